"""Verification of webhooks, without a server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import unittest
from email.message import Message
from typing import Any, Dict, List

from ninefold import NinefoldError, verify_webhook

NOW = 1_773_144_000.0
SECRET = f"whsec_{base64.b64encode(b'x' * 24).decode()}"
OLD = f"whsec_{base64.b64encode(b'y' * 24).decode()}"
PLATFORM_KEY = f"sm_{'a' * 43}_0123abcd"
BODY = '{"n":"☃"}'.encode()


def signature(secret: str, id: str, seconds: float, body: bytes) -> str:
    key = base64.b64decode(secret[6:])
    digest = hmac.new(key, f"{id}.{seconds:.0f}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def headers(*secrets: str, id: str = "msg_1", at: float = NOW, body: bytes = BODY) -> Dict[str, str]:
    signatures = " ".join(signature(secret, id, at, body) for secret in secrets)
    return {"webhook-id": id, "webhook-timestamp": f"{at:.0f}", "webhook-signature": signatures}


class StandardWebhooks(unittest.TestCase):
    def assert_rejected(self, why: str, *args: Any, **options: Any) -> None:
        given: Any = {"now": NOW, **options}
        with self.assertRaises(NinefoldError) as caught:
            verify_webhook(*args, **given)
        self.assertEqual(caught.exception.code, "delivery_invalid")
        self.assertIn(why, str(caught.exception))

    def test_the_vector_of_the_specification(self) -> None:
        given = {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        }
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        delivery = verify_webhook(given, '{"test": 2432232314}', secret, now=1614265330)
        self.assertEqual((delivery.id, delivery.kind, delivery.json()), (given["webhook-id"], "relay", {"test": 2432232314}))

    def test_what_a_valid_one_says(self) -> None:
        delivery = verify_webhook(headers(SECRET), BODY, SECRET, now=NOW)
        self.assertEqual((delivery.kind, delivery.id, delivery.event), ("relay", "msg_1", None))
        self.assertEqual((delivery.signed_at, delivery.body, delivery.text), (NOW, BODY, BODY.decode()))
        self.assertEqual(verify_webhook(headers(SECRET, id="evt_1"), BODY, SECRET, now=NOW).kind, "event")

    def test_headers_and_bodies_of_servers(self) -> None:
        given = headers(SECRET)
        message = Message()
        for name, value in given.items():
            message[name.title()] = value
        forms: List[Any] = [
            {name.upper(): value for name, value in given.items()},
            {name: [value] for name, value in given.items()},
            list(given.items()),
            [(name.encode(), value.encode()) for name, value in given.items()],
            message,
        ]
        for form in forms:
            bodies: List[Any] = [BODY, bytearray(BODY), memoryview(BODY), BODY.decode()]
            for body in bodies:
                self.assertEqual(verify_webhook(form, body, SECRET, now=NOW).id, "msg_1")

    def test_rotation(self) -> None:
        for signed_by in [(SECRET,), (OLD,), (OLD, SECRET)]:
            for known in [[SECRET, OLD], [OLD, SECRET], (OLD, SECRET)]:
                self.assertEqual(verify_webhook(headers(*signed_by), BODY, known, now=NOW).id, "msg_1")
        self.assert_rejected("signature is not valid", headers(OLD), BODY, SECRET)

    def test_age(self) -> None:
        for ago in [-300, 0, 300]:
            verify_webhook(headers(SECRET, at=NOW - ago), BODY, SECRET, now=NOW)
        self.assert_rejected("301 s ago", headers(SECRET, at=NOW - 301), BODY, SECRET)
        self.assert_rejected("301 s in the future", headers(SECRET, at=NOW + 301), BODY, SECRET)
        self.assert_rejected("11 s ago", headers(SECRET, at=NOW - 11), BODY, SECRET, tolerance=10)
        self.assert_rejected("ago", headers(SECRET), BODY, SECRET, now=None)

    def test_forgeries(self) -> None:
        good = headers(SECRET)
        for name in good:
            without = {other: value for other, value in good.items() if other != name}
            self.assert_rejected(f"the header {name} is missing", without, BODY, SECRET)
            self.assert_rejected(f"the header {name} is missing", [*good.items(), (name, "x")], BODY, SECRET)
        self.assert_rejected("signature", good, BODY + b" ", SECRET)
        self.assert_rejected("signature", {**good, "webhook-id": "msg_2"}, BODY, SECRET)
        self.assert_rejected("signature", {**good, "webhook-timestamp": f"{NOW + 1:.0f}"}, BODY, SECRET)
        for timestamp in ["1e9", "-1", "0x10", f"{NOW:.0f}.", "٣" * 10]:
            self.assert_rejected("malformed", {**good, "webhook-timestamp": timestamp}, BODY, SECRET)
        for forged in ["v1,", "v1", "v2" + good["webhook-signature"][2:], "é", "v1," * 1000]:
            self.assert_rejected("signature", {**good, "webhook-signature": forged}, BODY, SECRET)

    def test_arguments_that_are_mistakes(self) -> None:
        good = headers(SECRET)
        for secret in ["", [], [SECRET, ""], None, 7]:
            with self.assertRaises(TypeError):
                verify_webhook(good, BODY, secret, now=NOW)  # type: ignore[arg-type]
        for secret in ["whsec_", "whsec_!!!"]:
            with self.assertRaises(ValueError):
                verify_webhook(good, BODY, secret, now=NOW)
        with self.assertRaises(TypeError):
            verify_webhook(good, json.loads(BODY), SECRET, now=NOW)
        with self.assertRaises(TypeError):
            verify_webhook(BODY, good, SECRET, now=NOW)  # type: ignore[arg-type]


class PlatformKeys(unittest.TestCase):
    def signed(self, before: bytes, body: bytes = BODY) -> str:
        return hmac.new(PLATFORM_KEY.encode(), before + body, hashlib.sha256).hexdigest()

    def test_the_three_formats(self) -> None:
        ms = f"{NOW * 1000:.0f}"
        relay = {"X-Svc-Signature": f"sha256={self.signed(ms.encode())}", "X-Svc-Timestamp": ms, "X-Svc-Delivery-Id": "d1"}
        self.assertEqual(verify_webhook(relay, BODY, PLATFORM_KEY, now=NOW).kind, "relay")
        event = {"X-Svc-Signature": f"t={NOW:.0f},v1={self.signed(f'{NOW:.0f}.'.encode())}", "X-Svc-Event-Id": "e1"}
        self.assertEqual(verify_webhook(event, BODY, [SECRET, PLATFORM_KEY], now=NOW).id, "e1")
        body = json.dumps({"event": "monitor.down", "timestamp": NOW - 3000}).encode()
        alert = {"X-Svc-Signature": f"sha256={self.signed(b'', body)}", "X-Svc-Event": "monitor.down", "X-Svc-Delivery-Id": "d2"}
        found = verify_webhook(alert, body, PLATFORM_KEY, now=NOW)
        self.assertEqual((found.kind, found.event, found.signed_at), ("alert", "monitor.down", NOW - 3000))
        for given, data, now in [
            (relay, BODY + b"x", NOW),
            (relay, BODY, NOW + 301),
            ({**relay, "X-Svc-Timestamp": ms[:-1]}, BODY, NOW),
            ({**relay, "X-Svc-Signature": "md5=x"}, BODY, NOW),
            (event, BODY, NOW + 301),
            (alert, body, NOW + 601),
            ({**alert, "X-Svc-Event": "monitor.up"}, body, NOW),
        ]:
            with self.assertRaises(NinefoldError):
                verify_webhook(given, data, PLATFORM_KEY, now=now)

    def test_both_kinds_of_secrets(self) -> None:
        ms = f"{NOW * 1000:.0f}"
        old = {"X-Svc-Signature": f"sha256={self.signed(ms.encode())}", "X-Svc-Timestamp": ms, "X-Svc-Delivery-Id": "d1"}
        both = {**old, **headers(OLD)}
        self.assertEqual(verify_webhook(both, BODY, [SECRET, PLATFORM_KEY], now=NOW).id, "d1")
        with self.assertRaises(NinefoldError):
            verify_webhook(both, BODY + b" ", [SECRET, PLATFORM_KEY], now=NOW)


if __name__ == "__main__":
    unittest.main()
