// Requests to the server. Nothing here touches the page.

export class Failure extends Error {
  constructor(status, body) {
    super(body.error || `the server answered with status ${status}`);
    this.status = status;
    this.hint = body.hint || "";
    this.diagnostics = body.diagnostics || [];
  }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Failure(0, { error: "the server cannot be reached", hint: "The page tries again." });
  }
  if (!response.ok && !(options.also || []).includes(response.status)) {
    throw new Failure(response.status, await response.json().catch(() => ({})));
  }
  return response;
}

const json = async (path, options) => (await request(path, options)).json();
const of = (name) => `queries/${encodeURIComponent(name)}`;

export const queries = () => json("queries");
export const streams = () => json("streams");
export const graphs = () => json("kb", { also: [404] });
export const health = () => json("health", { also: [503] });
export const query = (name) => json(of(name));
export const drawing = async (name) => (await request(`${of(name)}/automaton.svg`)).text();
export const check = (text) => json("check", { method: "POST", body: text });
export const remove = (name) => request(of(name), { method: "DELETE" });
export const restart = (name) => request(`${of(name)}/restart`, { method: "POST" });
export const answerEvents = (name) => new EventSource(`${of(name)}/answers`);

export const why = async (name, event) => {
  const asked = event ? `?event=${encodeURIComponent(event)}` : "";
  return (await request(`${of(name)}/why${asked}`, { headers: { Accept: "text/plain" } })).text();
};

export const knowledge = (name, id) => json(`${of(name)}/answers/${id}/knowledge`);

export const lastAnswers = async (name, count) => {
  const text = await (await request(`${of(name)}/answers?last=${count}`)).text();
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
};

export const put = async (name, text, from) => {
  const since = from ? `?from=${encodeURIComponent(from)}` : "";
  const response = await request(of(name) + since, { method: "PUT", body: text });
  return { added: response.status === 201, ...(await response.json()) };
};

export const feed = async (asked) => {
  const given = Object.entries(asked).filter(([, value]) => value);
  const text = await (await request(`answers?${new URLSearchParams(given)}`)).text();
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
};

export const acknowledge = (id, note) =>
  json(`answers/${id}/acknowledge`, { method: "POST", body: JSON.stringify({ note }) });

export const enable = (name, enabled) =>
  request(of(name), { method: "PATCH", body: JSON.stringify({ enabled }) });

export const login = (token) =>
  request("login", { method: "POST", body: new URLSearchParams({ token }) });
