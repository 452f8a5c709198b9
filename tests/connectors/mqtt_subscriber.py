"""A client that keeps what an MQTT broker sends it."""

from __future__ import annotations

import threading
from typing import Any

from tests.connectors.mosquitto import Mosquitto


class Subscriber:
    """Has a session at the broker, so it misses nothing while the broker is restarted."""

    def __init__(self, broker: Mosquitto, topic: str) -> None:
        from paho.mqtt import client as mqtt
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        self.messages: list[Any] = []
        self._subscribed = threading.Event()
        self._client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, "subscriber", protocol=mqtt.MQTTv5
        )
        self._client.reconnect_delay_set(0.1, 0.2)
        self._client.on_message = lambda _, __, message: self.messages.append(message)
        self._client.on_connect = lambda *_: self._client.subscribe(topic, 1)
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        kept = Properties(PacketTypes.CONNECT)
        kept.SessionExpiryInterval = 1000
        if broker.login:
            self._client.username_pw_set(**broker.login)
        self._client.connect("127.0.0.1", broker.port, clean_start=False, properties=kept)
        self._client.loop_start()
        assert self._subscribed.wait(10)

    @property
    def ids(self) -> list[str]:
        return [dict(message.properties.UserProperty)["id"] for message in self.messages]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()
