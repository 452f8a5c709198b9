"""An MQTT broker on loopback, as a test needs it."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.nats_server import free_port


def program() -> str:
    """The broker's path; skips the test if it is missing."""
    found = shutil.which("mosquitto") or shutil.which("/usr/sbin/mosquitto")
    if found is None:
        pytest.skip("mosquitto is missing: apt-get install mosquitto")
    pytest.importorskip("paho.mqtt.client", reason="pip install '.[mqtt]'")
    return found


def add_user(passwords: Path, name: str, password: str) -> None:
    """Add a user to a file of passwords; skips the test if Mosquitto is missing."""
    program()
    passwords.touch()
    command = ["mosquitto_passwd", "-b", str(passwords), name, password]
    subprocess.run(command, check=True, capture_output=True)


class Mosquitto:
    """A broker with persistence, which can be stopped and started again."""

    def __init__(self, directory: Path, settings: str = "allow_anonymous true") -> None:
        self._program, self.port = program(), free_port()
        self._config, self._log = directory / "mosquitto.conf", directory / "mosquitto.log"
        (directory / "stored").mkdir()
        (directory / "stored").chmod(0o777)
        self._config.write_text(
            f"listener {self.port} 127.0.0.1\npersistence true\nuser root\n"
            f"persistence_location {directory / 'stored'}/\nmax_queued_messages 100000\n"
            f"{settings}\n"
        )
        self.login: dict[str, str] = {}
        self.start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with self._log.open("a") as log:
            command = [self._program, "-c", str(self._config)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None, self._log.read_text()
            time.sleep(0.05)
        raise AssertionError(self._log.read_text())

    def stop(self) -> None:
        """End the broker; it keeps its sessions and their messages."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def publish(
        self, topic: str, payloads: Sequence[bytes], ca: Path | None = None, **given: Any
    ) -> None:
        """Publish with QoS 1 unless it says otherwise; the broker has all when this returns."""
        from paho.mqtt import client as mqtt

        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        client.max_inflight_messages_set(1000)
        if self.login:
            client.username_pw_set(**self.login)
        if ca is not None:
            client.tls_set(str(ca))
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        sent = [client.publish(topic, payload, **{"qos": 1, **given}) for payload in payloads]
        for one in sent:
            one.wait_for_publish(30)
        client.disconnect()
        client.loop_stop()


def serving(directory: Path, **given: Any) -> Iterator[Mosquitto]:
    """For fixtures: a broker that ends with the test."""
    broker = Mosquitto(directory, **given)
    try:
        yield broker
    finally:
        broker.stop()
