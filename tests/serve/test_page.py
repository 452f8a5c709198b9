"""The page in Chromium, with the real server behind it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from spaseq.serve.server import PAGE
from tests.serve.commands import XSD, event, post, serve_command

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.xdist_group("page"),
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium"),
]

STREAMS = (
    "made",
    "orders",
    "hostile",
    "keys",
    "fast",
    "slow",
    "why",
    "lines",
    "silent",
    "ahead",
    "stopped",
)
STREAM = '[streams.{0}]\niri = "http://e/{0}"\nmax_message = "8 MB"\n'

QUERY = """PREFIX : <http://e/>
SELECT ?o ?paid WITHIN 1 HOURS FROM STREAM S <http://e/{stream}>
WHERE {{
  SEQ (Order; Payment)
  DEFINE GPM Order ON S {{ ?o :is :ordered }}
  DEFINE GPM Payment ON S {{ ?o :paid ?paid }}
}}"""


KB = """<http://e/o1> <http://e/madeBy> <http://e/c1> .
<http://e/c1> <http://e/name> "<script>window.hurt = 1</script> and \\u202Egnp.exe" .
<http://e/o2> <http://e/madeBy> <http://e/c2> .
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("serve")
    (directory / "kb.nt").write_text(KB)
    streams = "".join(map(STREAM.format, STREAMS)) + "[streams.twice]\n"
    streams += 'iri = "http://e/twice"\ndedup = "1 HOURS"\n'
    streams += '[kb."http://e/limits"]\nwritable = true\n[kb]\n"http://e/kb" = "kb.nt"\n'
    with serve_command(directory, streams) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def opened(
    browser: playwright.Browser, url: str, path: str = "", **how: object
) -> Iterator[playwright.Page]:
    """A page that may log no error, break no policy, and ask nobody but its server."""
    context = browser.new_context(**how)
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
    page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    page.on("request", lambda asked: asked.url.startswith(url) or wrong.append(asked.url))
    page.set_default_timeout(20_000)
    page.goto(f"{url}/{path}")
    yield page
    context.close()
    refused = "Failed to load resource: the server responded with a status of 40"
    assert [text for text in wrong if refused not in text] == []


@pytest.fixture
def page(browser: playwright.Browser, url: str) -> Iterator[playwright.Page]:
    with opened(browser, url) as found:
        yield found


def ordered(number: int) -> str:
    """An order, and an event after it: so all events of its time are there."""
    return event(number, "<http://e/o1> <http://e/is> <http://e/ordered>") + later(number)


def later(number: int) -> str:
    return event(number + 1, "<http://e/x> <http://e/is> <http://e/later>")


def put(url: str, name: str, text: str) -> None:
    assert httpx.put(f"{url}/queries/{name}", content=text).status_code == 201


def badge(page: playwright.Page, state: str) -> str:
    """The partial matches that the table below the drawing has for a state."""
    return f"#states-of-automaton tr:has(th:text-matches('^{state}')) td:nth-child(3)"


# --- the way of a query ---------------------------------------------------------------------------


def test_a_query_is_mended_matches_moves_and_goes(page: playwright.Page, url: str) -> None:
    expect = playwright.expect
    page.get_by_role("link", name="New query").click()
    page.get_by_label("Name").fill("paid")
    page.get_by_label("Text", exact=True).fill(
        QUERY.format(stream="orders").replace("; Pay", "; Pai")
    )
    expect(page.get_by_role("status").filter(has_text="1 error")).to_be_visible()
    expect(page.locator(".findings")).to_contain_text("no GPM is called Paiment")
    expect(page.locator(".findings")).to_contain_text("Did you mean Payment?")
    page.get_by_role("button", name="Add the query").click()
    expect(page.get_by_role("alert").filter(has_text="The query has mistakes")).to_be_visible()
    assert httpx.get(f"{url}/queries/paid").status_code == 404

    page.get_by_label("Text", exact=True).fill(QUERY.format(stream="orders"))
    expect(page.locator("#verdict")).to_have_text("No mistakes found.")
    page.get_by_role("button", name="Add the query").click()
    expect(page.get_by_role("heading", name="paid")).to_be_visible()
    expect(page.locator("span.pill")).to_have_text("running")

    page.get_by_text("As a table").click()
    drawn = page.locator(".automaton g.badge:not([hidden]):not(.taken)")
    expect(drawn).to_have_count(0)
    post(url, "orders", ordered(1))
    expect(drawn).to_have_text(["1"])
    post(url, "orders", ordered(3))
    expect(drawn).to_have_text(["2"])
    expect(page.locator(badge(page, "Order"))).to_have_text("2")
    expect(page.locator(".automaton .count")).to_have_text(["2", "0"])
    expect(page.get_by_text("No answers yet.")).to_be_visible()

    post(
        url, "orders", event(5, f'<http://e/o1> <http://e/paid> "17.5"^^<{XSD}decimal>') + later(5)
    )
    answers = page.locator("article.answer")
    expect(answers).to_have_count(2)
    expect(answers.first.locator(".timeline li")).to_have_text(["Order", "Payment"])
    expect(answers.first.locator("h3 time")).to_have_text("2026-01-01 00:00:05 UTC")
    expect(answers.first.locator(".bindings")).to_contain_text("17.5 decimal")
    expect(drawn).to_have_count(0)
    expect(page.locator(".automaton .count")).to_have_text(["2", "1"])

    page.get_by_role("link", name="Queries").click()
    row = page.get_by_role("row", name=re.compile("^paid running"))
    expect(row.locator(".answers")).to_have_text("2")
    row.get_by_role("link").click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert httpx.get(f"{url}/queries/paid").status_code == 200
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    expect(page.get_by_role("link", name="paid")).to_have_count(0)
    assert httpx.get(f"{url}/queries/paid").status_code == 404


def test_a_query_is_changed(page: playwright.Page, url: str) -> None:
    put(url, "changed", QUERY.format(stream="lines"))
    page.goto(f"{url}/#/query/changed")
    page.get_by_role("link", name="Edit").click()
    text = page.get_by_label("Text", exact=True)
    playwright.expect(text).to_have_value(QUERY.format(stream="lines"))
    text.fill(QUERY.format(stream="lines").replace("1 HOURS", "2 HOURS"))
    text.press("Control+Enter")
    playwright.expect(page.locator(".facts")).to_contain_text("2 HOURS")
    assert "2 HOURS" in httpx.get(f"{url}/queries/changed").json()["text"]


def test_why_it_does_not_match(page: playwright.Page, url: str) -> None:
    put(url, "never", QUERY.format(stream="why").replace(":ordered", ":orderd"))
    post(url, "why", ordered(1))
    page.goto(f"{url}/#/query/never")
    page.get_by_role("button", name="Why does it not match?").click()
    report = page.get_by_label("Report")
    playwright.expect(report).to_contain_text(":ordered")  # what occurs instead


# --- what comes from events -----------------------------------------------------------------------

HOSTILE = [
    "<script>window.hurt = 1</script>",
    "<img src=x onerror='window.hurt = 1'>",
    '"><svg onload=window.hurt=1>',
    "</bdi></dd><iframe src=javascript:window.hurt=1>",
    "\u202egnp.exe\u2066\u200f",
    "javascript:window.hurt=1",
    "{{constructor}}${window.hurt=1}",
]


def test_hostile_literals_do_nothing(page: playwright.Page, url: str) -> None:
    expect = playwright.expect
    put(
        url,
        "hostile",
        "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/hostile> WHERE "
        "{ SEQ(A) DEFINE GPM A ON S { ?o <http://e/says> ?v } }",
    )
    page.goto(f"{url}/#/query/hostile")
    expect(page.locator("span.pill")).to_have_text("running")
    texts = [*HOSTILE, "x" * 1_000_000 + "the end"]
    for number, text in enumerate(texts):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        post(url, "hostile", event(number, f'<http://e/o> <http://e/says> "{escaped}"'))
    post(url, "hostile", later(len(texts)))
    answers = page.locator("article.answer")
    expect(answers).to_have_count(len(texts))
    for shown in HOSTILE[:4]:
        expect(page.locator("main")).to_contain_text(shown)
    expect(page.locator("main")).to_contain_text(
        "\u27e8U+202E\u27e9gnp.exe\u27e8U+2066\u27e9\u27e8U+200F\u27e9"
    )
    expect(answers.first).to_contain_text("more characters")
    whole = page.evaluate("document.documentElement.outerHTML")
    assert len(whole) < 100_000
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f]", whole)
    assert page.evaluate("window.hurt") is None
    assert page.locator("main :is(script, img, iframe, object, embed, style)").count() == 0
    assert page.locator("main a[href^=javascript]").count() == 0


def test_the_graphs_with_their_sizes_and_last_changes(page: playwright.Page, url: str) -> None:
    expect = playwright.expect
    page.get_by_role("link", name="Knowledge").click()
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first.locator("td")).to_have_text(["3", "\u2013", re.compile("kb.nt$")])
    expect(rows.last).to_contain_text("http://e/limits")
    expect(rows.last.locator("td")).to_have_text(["0", "\u2013", "requests"])
    changed = httpx.put(
        f"{url}/kb?graph=http://e/limits",
        content="<http://e/a> <http://e/p> 1, 2 .",
        headers={"Content-Type": "text/turtle"},
    )
    assert changed.status_code == 201
    expect(rows.last.locator("td").first).to_have_text("2")
    expect(rows.last.locator("td").nth(1)).not_to_have_text("\u2013")


def test_what_an_answer_used_of_the_knowledge_base(page: playwright.Page, url: str) -> None:
    expect = playwright.expect
    read = "?o :madeBy ?who . ?who :name ?name"
    query = QUERY.format(stream="made").replace("WHERE", "FROM NAMED <http://e/kb> WHERE")
    put(url, "made", query.replace("?paid }\n", f"?paid . GRAPH <http://e/kb> {{ {read} }} }}\n"))
    page.goto(f"{url}/#/query/made")
    post(url, "made", ordered(1))
    post(url, "made", event(3, '<http://e/o1> <http://e/paid> "5"') + later(3))
    answer = page.locator("article.answer")
    expect(answer).to_have_count(1)
    expect(answer.locator("section")).to_have_count(0)  # nobody has asked
    answer.get_by_text("Used of the knowledge base").click()
    expect(answer.locator("section h4").first).to_contain_text("Payment")
    rows = answer.locator("section tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("madeByhttp://e/c1")
    expect(rows.first.get_by_title("http://e/madeBy")).to_be_visible()
    expect(rows.last).to_contain_text("<script>window.hurt = 1</script> and \u27e8U+202E\u27e9gnp")
    expect(answer).not_to_contain_text("c2")
    assert page.evaluate("window.hurt") is None


# --- streams --------------------------------------------------------------------------------------


def test_whom_everybody_waits_for(page: playwright.Page, url: str) -> None:
    expect = playwright.expect
    both = QUERY.format(stream="fast").replace("WHERE", "FROM STREAM T <http://e/slow>\nWHERE")
    put(url, "both", both.replace("Payment ON S", "Payment ON T"))
    put(url, "beside", QUERY.format(stream="fast"))
    post(url, "slow", event(60, "<http://e/a> <http://e/b> <http://e/c>"))
    post(url, "fast", event(3600, "<http://e/a> <http://e/b> <http://e/c>"))
    post(url, "fast", event(1800, "<http://e/a> <http://e/b> <http://e/c>"))  # late
    post(url, "fast", "this is no event\n", bad=1)
    page.get_by_role("link", name="Streams").click()
    expect(page.get_by_text("No query has waited for a stream for a minute.")).to_be_visible()
    slow = page.get_by_role("row", name=re.compile("^slow"))
    expect(slow).not_to_have_class("slowest")
    expect(slow.locator(".behind")).to_have_text("59 min")
    expect(slow.get_by_text("2026-01-01 00:01:00 UTC")).to_be_visible()
    fast = page.get_by_role("row", name=re.compile("^fast"))
    expect(fast.locator(".late")).to_have_text("1")
    expect(fast.locator(".bad")).to_have_text("1")
    for _ in range(3):
        post(url, "twice", event(1, "<http://e/a> <http://e/b> <http://e/c>"))
    twice = page.get_by_role("row", name=re.compile("^twice"))
    expect(twice.locator(".duplicate")).to_have_text("2")
    page.goto(f"{url}/#/query/both")
    expect(page.locator("#waits")).to_contain_text("For nothing")  # no match is possible

    names = [query["name"] for query in httpx.get(f"{url}/queries").json()]
    told = [{"query": name, "stream": "http://e/slow", "since": "2026-01-01"} for name in names]
    page.route("**/health", lambda route: route.fulfill(json={"status": "ok", "waiting": told}))
    page.get_by_role("link", name="Streams").click()
    expect(page.get_by_text("Everybody waits for slow.")).to_be_visible()
    expect(slow).to_have_class("slowest")


def test_what_a_query_waits_for(page: playwright.Page, url: str) -> None:
    expect, waits = playwright.expect, page.locator("#waits")
    silent = QUERY.format(stream="silent").replace("; Payment", "; Payment!")
    put(url, "silent", silent.replace("?o ?paid", "?o"))
    post(url, "silent", ordered(0))
    page.goto(f"{url}/#/query/silent")
    expect(waits.get_by_role("listitem")).to_have_text([re.compile("01:00:00")])
    expect(waits).to_contain_text("It waits for the watermark of silent.")
    either = QUERY.format(stream="ahead").replace("WHERE", "FROM STREAM T <http://e/stopped> WHERE")
    text = either.replace("?o ?paid", "?o").replace("(Order; Payment)", "(Order)")
    put(
        url,
        "held",
        text.replace("Order ON S", "Order ON S, T").partition("DEFINE GPM Pay")[0] + "}",
    )
    post(url, "ahead", ordered(0))
    page.goto(f"{url}/#/query/held")
    expect(waits).to_contain_text("1 answer is held. It waits for the watermark of stopped.")
    expect(waits.get_by_role("listitem")).to_have_count(0)


# --- people ---------------------------------------------------------------------------------------


def tabbed(page: playwright.Page, name: str) -> None:
    """Go to a control with the Tab key."""
    for _ in range(60):
        page.keyboard.press("Tab")
        at = page.evaluate(
            "() => { const e = document.activeElement;"
            " return (e.labels?.[0]?.textContent || e.textContent || '').trim(); }"
        )
        if at == name:
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"Tab never gets to {name}")


def test_with_the_keyboard_only(page: playwright.Page, url: str) -> None:
    expect = playwright.expect
    expect(page.get_by_role("heading", name="Alerts")).to_be_visible()
    tabbed(page, "New query")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New query")).to_be_visible()
    page.keyboard.type("typed")  # the name has the focus
    tabbed(page, "Text")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(QUERY.format(stream="keys").replace("?o :paid", "?o :paid :paid"))
    expect(page.locator("#verdict")).to_have_text("1 error")
    page.keyboard.press("Control+Enter")
    place = page.locator(".findings button").first
    expect(place).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(QUERY.format(stream="keys"))
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="typed")).to_be_visible()
    post(url, "keys", ordered(1))
    tabbed(page, "As a table")
    page.keyboard.press("Enter")
    expect(page.locator(badge(page, "Order"))).to_have_text("1")
    tabbed(page, "Why does it not match?")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Report")).to_contain_text("sequence")
    tabbed(page, "Skip to the content")
    tabbed(page, "Remove")
    page.keyboard.press("Enter")
    tabbed(page, "Remove")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    assert httpx.get(f"{url}/queries/typed").status_code == 404


def test_alerts_are_the_first_view(browser: playwright.Browser, tmp_path: Path) -> None:
    expect = playwright.expect
    with serve_command(tmp_path, STREAM.format("s")) as url, opened(browser, url) as page:
        expect(page.get_by_text("No query runs yet")).to_be_visible()
        text = QUERY.format(stream="s")
        put(url, "loud", f"# title: <b>Paid</b>\n# severity: critical\n{text}")
        put(url, "calm", text.replace("1 HOURS", "2 HOURS"))
        expect(page.get_by_text("2 queries run, and no event has come yet.")).to_be_visible()
        expect(page.get_by_role("link", name="Look at the streams")).to_be_visible()
        post(url, "s", later(-1))
        expect(page.get_by_text("2 queries run, and none has answered yet.")).to_be_visible()
        unit = '<http://e/o1> <http://e/unitPaid> "\u202e<img src=x>"'
        paid = '<http://e/o1> <http://e/paid> "5"'
        post(url, "s", ordered(1) + event(3, unit, paid) + later(4))
        alerts = page.locator("article.alert")
        expect(alerts).to_have_count(2)
        page.get_by_label("Severity").select_option("critical")
        expect(alerts).to_have_count(1)
        expect(alerts.locator("h2")).to_have_text("<b>Paid</b>")
        expect(alerts.locator(".said")).to_have_text("o o1paid 5")
        events = alerts.locator(".events li")
        expect(events).to_have_text(
            [
                "Order 00:00:01o1 is ordered",
                "Payment 00:00:03o1 unit paid \u27e8U+202E\u27e9<img src=x>paid 5",
            ]
        )
        expect(events.first.locator(".step")).to_have_attribute("title", "2026-01-01 00:00:01 UTC")
        page.get_by_role("button", name="Acknowledge").click()
        page.get_by_label("Note (may be empty)").fill("on it")
        page.keyboard.press("Enter")
        expect(alerts.locator("span.taken")).to_contain_text("acknowledged by local")
        page.get_by_label("not acknowledged").check()
        expect(page.get_by_text("No alert is left by the filters.")).to_be_visible()
        page.get_by_role("button", name="Show all").click()
        expect(alerts).to_have_count(2)
        page.get_by_label("Query").select_option("calm")
        expect(alerts).to_have_count(1)
        expect(alerts.locator("h2")).to_have_text("calm")
        for name in ("loud", "calm"):
            httpx.patch(f"{url}/queries/{name}", json={"enabled": False})
        page.get_by_label("Query").select_option("")
        expect(alerts).to_have_count(2)


def test_the_feed_with_the_keyboard_only(browser: playwright.Browser, tmp_path: Path) -> None:
    expect = playwright.expect
    with serve_command(tmp_path, STREAM.format("s")) as url, opened(browser, url) as page:
        put(url, "loud", f"# severity: critical\n{QUERY.format(stream='s')}")
        put(url, "calm", QUERY.format(stream="s").replace("1 HOURS", "2 HOURS"))
        post(url, "s", ordered(1) + event(3, '<http://e/o1> <http://e/paid> "5"') + later(4))
        alerts = page.locator("article.alert")
        expect(alerts).to_have_count(2)
        page.get_by_label("Query").focus()
        page.keyboard.press("Tab")
        expect(page.get_by_label("Severity")).to_be_focused()
        page.keyboard.press("c")  # critical
        expect(alerts).to_have_count(1)
        page.keyboard.press("Tab")
        page.keyboard.press("Space")  # not acknowledged
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="loud")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(alerts.locator(".timeline")).to_be_visible()
        tabbed(page, "Acknowledge")
        page.keyboard.press("Enter")
        page.keyboard.type("seen")
        page.keyboard.press("Enter")
        expect(page.get_by_text("No alert is left by the filters.")).to_be_visible()
        found = httpx.get(f"{url}/answers?query=loud").json()["acknowledged"]
        assert (found["who"], found["note"]) == ("local", "seen")


def test_a_server_without_streams_says_what_to_do(
    browser: playwright.Browser, tmp_path: Path
) -> None:
    with serve_command(tmp_path, "") as url, opened(browser, url, "#/streams") as page:
        playwright.expect(page.get_by_text("[streams.NAME]")).to_be_visible()
        playwright.expect(page.get_by_role("table")).to_be_hidden()


def test_a_token_is_asked_for(browser: playwright.Browser, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("open-sesame\n")
    (tmp_path / "token").chmod(0o600)
    with serve_command(tmp_path, STREAM.format("s"), 'token_file = "token"') as url:
        assert httpx.get(f"{url}/queries").status_code == 401
        with opened(browser, url) as page:
            field = page.get_by_label("Token")
            playwright.expect(field).to_be_focused()
            field.fill("guessed")
            field.press("Enter")
            playwright.expect(page.get_by_role("alert")).to_contain_text(["That is not the token."])
            field.fill("open-sesame")
            field.press("Enter")
            playwright.expect(page.get_by_role("heading", name="Alerts")).to_be_visible()
            assert page.evaluate("document.cookie") == ""  # no script reads the token


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_small_screens_and_both_schemes(browser: playwright.Browser, url: str, scheme: str) -> None:
    put(url, scheme, QUERY.format(stream="lines"))
    small = {"viewport": {"width": 375, "height": 700}, "color_scheme": scheme}
    with opened(browser, url, **small) as page:
        for path in (
            "#/",
            "#/queries",
            "#/streams",
            f"#/query/{scheme}",
            f"#/edit/{scheme}",
            "#/new",
        ):
            page.goto(f"{url}/{path}")
            page.get_by_role("heading", level=1).wait_for()
            page.wait_for_timeout(300)
            assert page.evaluate("document.scrollingElement.scrollWidth") <= 375, path
        assert page.evaluate(_CONTRAST) >= 4.5


_CONTRAST = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const page = light(getComputedStyle(document.body).backgroundColor);
  const ratios = ["body", "main a", ".quiet", ".primary"].map((name) => {
    const style = getComputedStyle(document.querySelector(name));
    const back = name === ".primary" ? light(style.backgroundColor) : page;
    const [least, most] = [light(style.color), back].sort((a, b) => a - b);
    return (most + 0.05) / (least + 0.05);
  });
  return Math.min(...ratios);
}"""


# --- the files ------------------------------------------------------------------------------------


def test_the_page_needs_nobody_else(url: str) -> None:
    """No script or style in the HTML, no address of another server, and a policy that says so."""
    policy = httpx.get(url).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    for path in PAGE.iterdir():
        text = path.read_text("utf-8")
        assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org", "http://example"}
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        if path.suffix == ".html":
            assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", text)
