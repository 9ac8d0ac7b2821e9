"""How requests are sent, repeated and reported."""

from __future__ import annotations

import os
import pickle
import tempfile
import unittest
import warnings
from typing import Any, Callable, Dict
from unittest import mock

from ninefold import Ninefold, NinefoldConnectionError, NinefoldError, NinefoldWarning
from ninefold._errors import read_retry_after
from ninefold._transport import BACKOFF_MAX, RETRY_AFTER_MAX, wait_before

from .stub import Reply, Stub, api_error

KEY = f"sm_{'a' * 43}_0123abcd"
BUSY = api_error(503, "service_unavailable")
LIMITED = api_error(429, "rate_limit_exceeded", {"Retry-After": "0"})
RUNNING = api_error(409, "conflict", {"Retry-After": "0"})
CARRIED_OUT = api_error(503, "service_unavailable", carried_out=True)
PROXY = Reply(502, b"<html>Bad Gateway</html>")
CUT = Reply(instead="cut")
HANG = Reply(instead="hang")
BALANCE = Reply(body={"balance": 7, "meter_id": "m"})

CALLS: Dict[str, Callable[[Ninefold], Any]] = {
    "deduct": lambda nf: nf.meter("m").deduct(3),
    "balance": lambda nf: nf.meter("m").balance(),
    "verify": lambda nf: nf.keys.verify("acme_x"),
    "signup": lambda nf: nf.signup(email="ada@example.com", tier="free"),
    "send": lambda nf: nf.catch.send("brave-otter-314159", "{}"),
    "unkeyed": lambda nf: nf.meter("m").deduct(3, idempotency_key=None),
    "raw": lambda nf: nf.request("POST", "/v1/meter/m/deduct", {"amount": 3}),
    "raw verify": lambda nf: nf.request("POST", "/v1/keys/verify", {"secret": "x"}),
    "ping": lambda nf: nf.monitors.ping(f"{nf._api.transport.settings.urls[0]}/ping/x"),
}


class Retries(unittest.TestCase):
    def setUp(self) -> None:
        patch = mock.patch("ninefold._transport.time.sleep")
        self.sleep = patch.start()
        self.addCleanup(patch.stop)

    def test_only_what_may_be_repeated_is(self) -> None:
        for name, first, requests in [
            ("deduct", BUSY, 2),
            ("deduct", LIMITED, 2),
            ("deduct", CUT, 2),
            ("deduct", PROXY, 2),
            ("deduct", RUNNING, 2),
            ("deduct", api_error(409, "conflict"), 1),
            ("deduct", api_error(500, "internal_error"), 1),
            ("deduct", api_error(402, "insufficient_balance"), 1),
            ("deduct", Reply(500, b"<html>"), 1),
            ("deduct", CARRIED_OUT, 1),
            ("unkeyed", CARRIED_OUT, 1),
            ("raw", CUT, 2),
            ("raw verify", CUT, 2),
            ("balance", CUT, 2),
            ("balance", PROXY, 2),
            ("balance", RUNNING, 1),
            ("verify", CUT, 2),
            ("ping", CUT, 2),
            # These may have happened, and would happen twice.
            ("signup", CUT, 1),
            ("signup", PROXY, 1),
            ("signup", BUSY, 2),
            ("send", CUT, 1),
            ("send", LIMITED, 2),
            ("unkeyed", CUT, 1),
            ("unkeyed", PROXY, 1),
            ("unkeyed", BUSY, 2),
        ]:
            with self.subTest(name, first=first), Stub(first, BALANCE) as stub:
                try:
                    CALLS[name](Ninefold(stub.url, KEY, retries=1))
                    outcome = "response"
                except NinefoldError:
                    outcome = "error"
                self.assertEqual((len(stub.requests), outcome), (requests, "response" if requests == 2 else "error"))

    def test_attempts_share_a_key_and_calls_do_not(self) -> None:
        with Stub(BUSY, BALANCE) as stub:
            nf = Ninefold(stub.url, KEY)
            nf.meter("m").deduct(3)
            nf.meter("m").deduct(3)
            nf.meter("m").deduct(3, idempotency_key="invoice-7")
            keys = [one.headers["idempotency-key"] for one in stub.requests]
        self.assertEqual(keys[0], keys[1])
        self.assertNotEqual(keys[1], keys[2])
        self.assertEqual(keys[3], "invoice-7")

    def test_the_number_of_retries_can_be_set(self) -> None:
        for client, call, requests in [(0, None, 1), (2, None, 3), (2, 0, 1), (0, 1, 2)]:
            with self.subTest(client=client, call=call), Stub(BUSY) as stub:
                with self.assertRaises(NinefoldError):
                    Ninefold(stub.url, KEY).with_options(retries=client).meter("m").balance(retries=call)
                self.assertEqual(len(stub.requests), requests)

    def test_a_first_attempt_that_is_still_running_uses_no_retry(self) -> None:
        with Stub(CUT, RUNNING, RUNNING, RUNNING, BALANCE) as stub:
            self.assertEqual(Ninefold(stub.url, KEY, retries=1).meter("m").deduct(3)["balance"], 7)

    def test_waits(self) -> None:
        def error(after: Any) -> NinefoldError:
            return NinefoldError("x", code="service_unavailable", retry_after=after)

        for retry, least, most in [(0, 0.25, 0.5), (1, 0.5, 1), (3, 2, 4), (4, 4, 8), (99, 4, BACKOFF_MAX)]:
            wait = wait_before(retry, error(None))
            assert wait is not None
            self.assertTrue(least <= wait <= most)
        self.assertGreaterEqual(wait_before(0, error(7)) or 0, 7)
        self.assertIsNone(wait_before(0, error(RETRY_AFTER_MAX + 1)))
        self.assertEqual(read_retry_after("3", 0), 3)
        self.assertEqual(read_retry_after("Thu, 01 Jan 1970 00:00:10 GMT", 4), 6)
        for malformed in ["", "soon", "-1", "9" * 40]:
            self.assertIsNone(read_retry_after(malformed, 0))

    def test_a_longer_wait_than_the_client_accepts_is_an_error(self) -> None:
        with Stub(api_error(429, "rate_limit_exceeded", {"Retry-After": "31"})) as stub:
            with self.assertRaises(NinefoldError) as caught:
                Ninefold(stub.url, KEY).ping()
            self.assertEqual((caught.exception.retry_after, len(stub.requests)), (31, 1))


class Attempts(unittest.TestCase):
    def test_a_hanging_request_times_out(self) -> None:
        with Stub(HANG) as stub:
            with self.assertRaises(NinefoldConnectionError) as caught:
                Ninefold(stub.url, KEY, retries=0).meter("m").balance(timeout=0.2)
            self.assertEqual((caught.exception.code, caught.exception.status), ("timed_out", 0))
            self.assertIn("0.2 s", str(caught.exception))

    def test_a_body_that_never_ends_times_out(self) -> None:
        with Stub(Reply(headers={"Content-Length": "100"}, keeps_open=True)) as stub:
            with self.assertRaises(NinefoldConnectionError) as caught:
                Ninefold(stub.url, KEY, retries=0, timeout=0.2).ping()
            self.assertEqual(caught.exception.code, "timed_out")

    def test_a_body_that_is_cut_off_is_a_connection_error(self) -> None:
        with Stub(Reply(headers={"Content-Length": "100"})) as stub:
            with self.assertRaises(NinefoldConnectionError) as caught:
                Ninefold(stub.url, KEY, retries=0).ping()
            self.assertEqual(caught.exception.code, "connection_failed")

    def test_nobody_listens(self) -> None:
        with Stub(BALANCE) as stub:
            url = stub.url
        with self.assertRaises(NinefoldConnectionError) as caught:
            Ninefold(url, KEY, retries=0).ping()
        self.assertEqual(caught.exception.code, "connection_failed")

    def test_connections_are_used_again_only_where_a_repeat_is_safe(self) -> None:
        with Stub(Reply(keeps_open=True)) as stub, Ninefold(stub.url, KEY) as nf:
            nf.ping()
            nf.ping()
            nf.catch.send("brave-otter-314159", "{}")
            self.assertEqual([one.before for one in stub.requests], [0, 1, 0])

    def test_a_connection_that_the_server_closed_meanwhile_is_replaced(self) -> None:
        with Stub(Reply(keeps_open=True), CUT, Reply(keeps_open=True)) as stub, Ninefold(stub.url, KEY, retries=0) as nf:
            nf.ping()
            nf.ping()
            self.assertEqual([one.before for one in stub.requests], [0, 1, 0])

    def test_with_several_addresses_the_next_one_is_used(self) -> None:
        with Stub(BALANCE) as closed:
            gone = closed.url
        with Stub(BALANCE) as leader:
            not_leader = api_error(503, "not_leader", {"Ninefold-Leader": f"{leader.url}/"})
            with Stub(not_leader) as follower:
                nf = Ninefold([gone, follower.url, leader.url], KEY, retries=0)
                nf.meter("m").deduct(1)
                nf.meter("m").deduct(1)
                self.assertEqual((len(follower.requests), len(leader.requests)), (1, 2))


class Errors(unittest.TestCase):
    def test_everything_that_the_server_says(self) -> None:
        reply = api_error(400, "validation_error", fields={"url": ["is missing"]}, balance=3)
        with Stub(reply) as stub, self.assertRaises(NinefoldError) as caught:
            Ninefold(stub.url, KEY).ping()
        error = caught.exception
        self.assertEqual((error.status, error.code, str(error)), (400, "validation_error", "a validation_error"))
        self.assertEqual((error.request_id, error.docs), ("req-1", "/docs/errors/validation_error"))
        self.assertEqual((error.fields, error.extras), ({"url": ["is missing"]}, {"balance": 3}))
        self.assertEqual(vars(pickle.loads(pickle.dumps(error))), vars(error))

    def test_a_redirect_is_not_followed(self) -> None:
        with Stub(Reply(301, b"", {"Location": "https://new.example.com"})) as stub:
            with self.assertRaises(NinefoldError) as caught:
                Ninefold(stub.url, KEY, retries=0).ping()
        self.assertEqual(caught.exception.code, "unexpected_answer")
        self.assertIn("https://new.example.com", str(caught.exception))

    def test_a_page_in_place_of_json(self) -> None:
        with Stub(Reply(200, b"<html>")) as stub, self.assertRaises(NinefoldError) as caught:
            Ninefold(stub.url, KEY, retries=0).ping()
        self.assertEqual((caught.exception.code, caught.exception.status), ("unexpected_answer", 200))

    def test_the_key_is_shown_nowhere(self) -> None:
        nf = Ninefold("http://127.0.0.1:1", KEY, retries=0)
        with self.assertRaises(NinefoldError) as caught:
            nf.ping()
        for shown in [repr(nf), repr(nf._api.transport), repr(nf.relay), repr(caught.exception), str(caught.exception)]:
            self.assertNotIn(KEY, shown)
            self.assertNotIn("a" * 43, shown)

    def test_warnings_are_reported_once(self) -> None:
        reply = Reply(body={"pong": True, "warnings": ["unknown field: x"]})
        with Stub(reply) as stub:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                nf = Ninefold(stub.url, KEY)
                nf.ping()
                nf.ping()
            self.assertEqual([(one.category, str(one.message)) for one in caught], [(NinefoldWarning, "Ninefold: unknown field: x")])
            reported: Any = []
            Ninefold(stub.url, KEY, on_warning=reported.append).ping()
            self.assertEqual(reported, ["unknown field: x"])


class Arguments(unittest.TestCase):
    def test_addresses_and_keys_of_the_environment(self) -> None:
        with Stub(BALANCE) as stub, tempfile.NamedTemporaryFile("w", suffix=".key") as file:
            file.write(f"{KEY}\n")
            file.flush()
            for environment in [
                {"NINEFOLD_URL": stub.url, "NINEFOLD_API_KEY": KEY},
                {"NINEFOLD_URL": stub.url, "NINEFOLD_API_KEY_FILE": file.name},
            ]:
                with mock.patch.dict(os.environ, environment, clear=True):
                    Ninefold().meter("m").balance()
                    Ninefold(api_key=None).meter("m").balance()
                sent = [one.headers.get("authorization") for one in stub.requests[-2:]]
                self.assertEqual(sent, [f"Bearer {KEY}", None])

    def test_invalid_options(self) -> None:
        for options in [
            {},
            {"url": ""},
            {"url": []},
            {"url": "ninefold.example.com"},
            {"url": "ftp://example.com"},
            {"url": "https://example.com:port"},
            {"url": "https://user:pass@example.com"},
            {"url": "https://example.com/?a=1"},
            {"url": "https://exa mple.com"},
            {"url": "https://example.com", "api_key": ""},
            {"url": "https://example.com", "api_key": "secret"},
            {"url": "https://example.com", "api_key": 7},
            {"url": "https://example.com", "timeout": 0},
            {"url": "https://example.com", "timeout": float("nan")},
            {"url": "https://example.com", "retries": -1},
            {"url": "https://example.com", "retries": 1.5},
        ]:
            with self.subTest(options), mock.patch.dict(os.environ, {}, clear=True), self.assertRaises(ValueError) as caught:
                Ninefold(**options)  # type: ignore[arg-type]
            self.assertNotIn("secret", str(caught.exception).replace("a secret", ""))
        with Stub(BALANCE) as stub:
            nf = Ninefold(stub.url, KEY)
            for key in ["", " x", "é", "x" * 256]:
                with self.assertRaises(ValueError):
                    nf.meter("m").deduct(1, idempotency_key=key)
            with self.assertRaises(ValueError):
                nf.request("GET", "v1/ping")
            self.assertEqual(stub.requests, [])

    def test_segments_of_paths(self) -> None:
        with Stub(BALANCE) as stub:
            nf = Ninefold(f"{stub.url}/base/", KEY)
            nf.meter("a/b c?ü").balance()
            self.assertEqual(stub.requests[0].path, "/base/v1/meter/a%2Fb%20c%3F%C3%BC/balance")
            for value in ["", ".", "..", "\ud800", None, True]:
                with self.assertRaises(TypeError):
                    nf.meter(value).balance()  # type: ignore[arg-type]

    def test_bodies_and_queries(self) -> None:
        with Stub(Reply(body={"entries": []})) as stub:
            nf = Ninefold(stub.url, KEY)
            nf.relay.endpoints.create(url="https://example.com", event_types=["a"])
            nf.relay.endpoints.create({"url": "https://example.com", "name": "x"})
            nf.relay.endpoints.update("ep_1", url="https://example.com")
            nf.monitors.create(url="https://example.com", body="ping", timeout=1000)
            nf.audit.list(from_="5", limit=2).page()
            nf.flags.config(full=True, archived=False)
            sent = [(one.method, one.path, one.body) for one in stub.requests]
            self.assertEqual(
                sent,
                [
                    ("POST", "/v1/relay/endpoints", b'{"url":"https://example.com","event_types":["a"]}'),
                    ("POST", "/v1/relay/endpoints", b'{"url":"https://example.com","name":"x"}'),
                    ("PATCH", "/v1/relay/endpoints/ep_1", b'{"url":"https://example.com"}'),
                    ("POST", "/v1/pulse", b'{"url":"https://example.com","body":"ping","timeout":1000}'),
                    ("GET", "/v1/audit?from=5&limit=2", b""),
                    ("GET", "/v1/gate/config?full=true&archived=false", b""),
                ],
            )
            with self.assertRaises(TypeError):
                nf.relay.endpoints.create("https://example.com")  # type: ignore[call-overload]


if __name__ == "__main__":
    unittest.main()
