"""The client and a real server, whose address and key are in the environment."""

from __future__ import annotations

import asyncio
import http.server
import json
import logging
import os
import sys
import threading
import time
import unittest
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any, List, Tuple

from ninefold import Ninefold, NinefoldError, heartbeat, models, verify_webhook


def until(what: Any) -> Any:
    """Waits for something that happens in the background."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.nf = Ninefold()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.nf.close()

    nf: Ninefold


class Requests(Case):
    def test_a_meter(self) -> None:
        meter = self.nf.meter("customer-1")
        self.assertEqual(meter.refill(100)["balance"], 100)
        self.assertEqual(meter.deduct(30, idempotency_key="line-1")["balance"], 70)
        self.assertEqual(meter.deduct(30, idempotency_key="line-1")["balance"], 70)
        with self.assertRaises(NinefoldError) as caught:
            meter.deduct(71)
        self.assertEqual((caught.exception.status, caught.exception.code), (402, "insufficient_balance"))
        self.assertEqual(caught.exception.extras["balance"], 70)
        self.assertTrue(caught.exception.request_id)
        self.assertEqual([entry["amount"] for entry in meter.history()], [-30, 100])

    def test_fields_of_an_error(self) -> None:
        with self.assertRaises(NinefoldError) as caught:
            self.nf.relay.endpoints.create(url="not an address")
        self.assertEqual((caught.exception.status, caught.exception.code), (400, "validation_error"))
        self.assertIn("url", caught.exception.fields)

    def test_pages(self) -> None:
        for at in range(5):
            self.nf.keys.create(prefix="acme", name=f"key {at}", scopes=["read"], owner_id="pages")
        keys = self.nf.keys.list(owner_id="pages", limit=2)
        self.assertEqual([key["name"] for key in keys], [f"key {at}" for at in (4, 3, 2, 1, 0)])
        self.assertEqual([len(page["keys"]) for page in keys.pages()], [2, 2, 1])
        first = keys.page()
        self.assertTrue(first["has_more"])
        rest = list(self.nf.keys.list(owner_id="pages", cursor=str(first["next_cursor"])))
        self.assertEqual(len(rest), 3)

    def test_checks(self) -> None:
        made = self.nf.keys.create(prefix="acme", name="Ada", scopes=["read"], owner_id="checked")
        self.nf.meter("checked").refill(5)
        one = self.nf.check(secret=made["secret"], require=["read"], deduct={"amount": 2})
        self.assertTrue(one["allowed"])
        # Each of several sees those before it.
        item: models.CheckItem = {"secret": made["secret"], "deduct": {"amount": 2}}
        results = self.nf.check(checks=[item, item, {"secret": "unknown"}])["results"]
        self.assertEqual([each["status"] for each in results], [200, 402, 401])
        self.assertEqual(self.nf.meter("checked").deduct(1)["balance"], 0)

    def test_a_key(self) -> None:
        made = self.nf.keys.create(prefix="acme", name="Ada", scopes=["read", "write"])
        verdict = self.nf.keys.verify(made["secret"], require=["read"], ip="192.0.2.1", user_agent="test")
        self.assertTrue(verdict["valid"])
        self.assertEqual(self.nf.keys.get(made["key_id"])["last_used_ip"], "192.0.2.1")
        self.assertFalse(self.nf.keys.verify("acme_wrong")["valid"])
        self.nf.keys.revoke(made["key_id"])
        self.assertFalse(self.nf.keys.verify(made["secret"])["valid"])

    def test_another_project(self) -> None:
        project = self.nf.projects.create(name="Shop")
        key = self.nf.projects.create_key(project["id"], prefix="sm", name="server", scopes=["*"])
        inside = self.nf.with_key(key["secret"])
        inside.flags.save(flag_key="only-here", enabled=True)
        self.assertTrue(inside.flags.is_enabled("only-here"))
        self.assertFalse(self.nf.flags.is_enabled("only-here", fallback=False))
        with self.assertRaises(NinefoldError) as caught:
            self.nf.flags.is_enabled("only-here")
        self.assertEqual(caught.exception.code, "gate.feature_not_found")
        with self.assertRaises(NinefoldError) as caught:
            self.nf.with_key(None).flags.is_enabled("only-here")
        self.assertEqual(caught.exception.status, 401)

    def test_flags(self) -> None:
        self.nf.flags.save(
            flag_key="plan", enabled=True, type="string", variants={"free": "f", "pro": "p"}, default={"variant": "pro"}
        )
        self.assertEqual(self.nf.flags.string("plan", {"targetingKey": "user-1"}, "none"), "p")
        self.assertEqual(self.nf.flags.number("plan", {}, 7), 7)
        self.assertEqual(self.nf.flags.object("plan", {}, {"a": 1}), {"a": 1})
        self.assertIs(self.nf.flags.boolean("missing", {}, True), True)
        self.assertIn("plan", list(self.nf.flags.list()))
        self.assertIn("plan", [flag["flag_key"] for flag in self.nf.flags.config()["flags"]])

    def test_any_request(self) -> None:
        response = self.nf.request("GET", "/v1/ping")
        self.assertEqual((response.status, response.body), (200, {"pong": True}))
        self.assertEqual(response.headers["x-request-id"], response.request_id)
        self.assertEqual(self.nf.request("post", "/v1/meter/any/refill", {"amount": 2}).body["balance"], 2)

    def test_many_threads(self) -> None:
        threads = [threading.Thread(target=lambda: self.nf.meter("threads").refill(1)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.nf.meter("threads").balance()["balance"], 20)

    def test_a_bucket(self) -> None:
        bucket = self.nf.catch.buckets.create(name="inbox", delivery="pull")["id"]
        self.assertEqual([one["id"] for one in self.nf.catch.buckets.list(name="inbox")], [bucket])
        body = b'{"order": \xe2\x98\x83}'
        self.nf.catch.send(bucket, body, headers={"Content-Type": "text/plain"})
        self.nf.catch.send_in(bucket, "two", below="/orders?shop=1")
        events = list(self.nf.catch.events.export(bucket))
        self.assertEqual(len(events), 2)
        self.assertEqual(self.nf.catch.events.raw(bucket, events[0]["id"]), body)
        tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
        self.nf.catch.events.delete_before(bucket, datetime.now(timezone(timedelta(hours=2))) - timedelta(days=1))
        self.assertEqual(len(list(self.nf.catch.events.list(bucket))), 2)
        with self.assertRaises(ValueError):
            self.nf.catch.events.delete_before(bucket, datetime(2026, 1, 1))
        self.nf.catch.events.delete_before(bucket, tomorrow)
        self.assertEqual(list(self.nf.catch.events.list(bucket)), [])
        self.nf.catch.buckets.delete(bucket)

    def test_a_chain(self) -> None:
        self.nf.notary.init()
        for amount in range(3):
            receipt = self.nf.notary.log({"event": "invoice.paid", "amount": amount})
        self.assertTrue(self.nf.notary.verify(receipt)["valid"])
        self.assertEqual([one["log"]["amount"] for one in self.nf.notary.export()], [0, 1, 2])
        self.assertEqual([one["log"]["amount"] for one in self.nf.notary.export(from_=3)], [2])
        self.assertIn("note", self.nf.notary.checkpoint())
        self.nf.notary.receipts.bundle(receipt["sequence_id"])


class Reservations(Case):
    def test_what_a_block_uses_is_captured(self) -> None:
        meter = self.nf.meter("reserved")
        meter.refill(100)
        with self.nf.reserve("reserved", amount=60) as reservation:
            self.assertEqual(reservation.hold["available"], 40)
            reservation.use(45)
        self.assertEqual(meter.balance()["balance"], 55)
        with self.nf.reserve("reserved", {"amount": 5}):
            pass
        self.assertEqual(meter.balance()["balance"], 50)
        with self.assertRaises(KeyError), self.nf.reserve("reserved", amount=50):
            raise KeyError
        self.assertEqual((meter.balance()["balance"], meter.balance()["held"]), (50, 0))
        with self.assertRaises(NinefoldError) as caught, self.nf.reserve("reserved", amount=51):
            self.fail("the block must not run")
        self.assertEqual(caught.exception.code, "insufficient_balance")
        with self.nf.reserve("reserved", amount=1, hold_id="once"):
            pass
        with self.assertRaises(NinefoldError) as caught, self.nf.reserve("reserved", amount=1, hold_id="once"):
            self.fail("the block must not run")
        self.assertEqual(caught.exception.code, "conflict")


class Locks(Case):
    def test_one_block_at_a_time(self) -> None:
        inside: List[int] = []
        most: List[int] = []

        def work() -> None:
            with self.nf.with_lock("one", wait_ms=60_000) as lock:
                inside.append(lock.fencing_token)
                most.append(len(inside))
                time.sleep(0.01)
                lock.check()
                inside.pop()

        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(most, [1] * 5)

    def test_it_is_renewed_and_released(self) -> None:
        with self.nf.with_lock("renewed", ttl_ms=1_000) as lock:
            time.sleep(1.6)
            self.assertFalse(lock.is_lost)
        self.nf.locks.acquire("renewed", wait_ms=1_000)

    def test_an_error_releases_it_and_is_raised(self) -> None:
        with self.assertRaises(KeyError), self.nf.with_lock("failed"):
            raise KeyError
        self.nf.locks.acquire("failed", wait_ms=1_000)

    def test_one_that_others_hold(self) -> None:
        held = self.nf.locks.acquire("busy", ttl_ms=60_000)
        with self.assertRaises(NinefoldError) as caught, self.nf.with_lock("busy", wait_ms=1_000):
            self.fail("the block must not run")
        self.assertEqual(caught.exception.code, "timeout")
        self.nf.locks.release("busy", held["token"])

    def test_one_that_others_hold_is_tried_once(self) -> None:
        held = self.nf.locks.acquire("tried", wait_ms=0)
        with self.assertRaises(NinefoldError) as caught, self.nf.with_lock("tried", wait_ms=0):
            self.fail("the block must not run")
        self.assertEqual(caught.exception.code, "timeout")
        self.nf.locks.release("tried", held["token"])
        with self.nf.with_lock("tried", wait_ms=0) as lock:
            self.assertGreater(lock.fencing_token, held["fencing_token"])

    def test_several_readers_share_one(self) -> None:
        with self.nf.with_lock("shared", mode="shared"):
            with self.nf.with_lock("shared", ttl_ms=1_000, mode="shared", wait_ms=0) as reader:
                time.sleep(1.2)
                self.assertFalse(reader.is_lost)
                with self.assertRaises(NinefoldError) as caught:
                    self.nf.locks.acquire("shared", mode="exclusive", wait_ms=0)
        self.assertEqual(caught.exception.code, "timeout")
        self.nf.locks.acquire("shared", wait_ms=1_000)

    def test_a_lost_one_is_an_error(self) -> None:
        with self.assertRaises(NinefoldError) as caught:
            with self.nf.with_lock("lost", ttl_ms=1_000) as lock:
                self.nf.locks.force_release("lost", lock.fencing_token)
                self.nf.locks.acquire("lost", ttl_ms=60_000, wait_ms=1_000)
                until(lambda: lock.is_lost)
                with self.assertRaises(NinefoldError):
                    lock.check()
        self.assertEqual(caught.exception.code, "lock_lost")


class Heartbeats(Case):
    def setUp(self) -> None:
        self.monitor = self.nf.monitors.create(type="heartbeat", name=f"job {uuid.uuid4()}", period_ms=60_000, grace_ms=60_000)
        self.ping_url = str(self.monitor["ping_url"])

    def pings(self) -> List[Tuple[Any, Any]]:
        pings: Any = self.nf.monitors.pings(self.monitor["id"])
        return [(ping["kind"], ping) for ping in reversed(pings["pings"])]

    def kinds(self) -> List[Any]:
        return [kind for kind, _ in self.pings()]

    def test_a_block(self) -> None:
        with self.nf.heartbeat(self.ping_url) as run:
            run.log("half of it")
            run.success("all of it")
        self.assertEqual(self.kinds(), ["start", "log", "success"])
        self.assertEqual({ping["rid"] for _, ping in self.pings()}, {run.id})

    def test_a_function_that_fails(self) -> None:
        @heartbeat(self.ping_url)
        def job(amount: int) -> int:
            """Does it."""
            return 1 // amount

        self.assertEqual((job(1), job.__name__, job.__doc__), (1, "job", "Does it."))
        with self.assertRaises(ZeroDivisionError):
            job(0)
        self.assertEqual(self.kinds(), ["start", "success", "start", "fail"])
        self.assertIn("ZeroDivisionError", json.dumps(self.pings()[-1]))

    def test_a_coroutine(self) -> None:
        @self.nf.heartbeat(self.ping_url)
        async def job() -> str:
            await asyncio.sleep(0)
            return "done"

        self.assertEqual(asyncio.run(job()), "done")
        self.assertEqual(self.kinds(), ["start", "success"])

    def test_an_exit_status(self) -> None:
        for code in [None, 0, 3, "no space left"]:
            with self.assertRaises(SystemExit), self.nf.heartbeat(self.ping_url):
                sys.exit(code)
        ends = [kind for kind in self.kinds() if kind != "start"]
        self.assertEqual([ends[0], ends[1]], ["success", "success"])
        self.assertNotIn("success", ends[2:])

    def test_manual_pings(self) -> None:
        run = self.nf.heartbeat(self.ping_url).run()
        run.start()
        run.fail("3 files are missing")
        run.success()
        self.assertEqual(self.kinds(), ["start", "fail"])

    def test_a_server_that_is_down_does_not_disturb_the_job(self) -> None:
        ran = []
        with self.assertLogs("ninefold", logging.WARNING) as logs:
            nobody = Ninefold("http://127.0.0.1:1", None, retries=0)
            with nobody.heartbeat("http://127.0.0.1:1/ping/secret"):
                ran.append(True)
        self.assertEqual((ran, len(logs.output)), ([True], 2))
        self.assertNotIn("secret", "".join(logs.output))
        with self.assertRaises(ValueError):
            heartbeat("http://127.0.0.1:1/pong")


class Webhooks(Case):
    def test_deliveries_are_verified(self) -> None:
        received: List[Tuple[Any, bytes]] = []

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{receiver.server_address[1]}/"
        try:
            endpoint = self.nf.relay.endpoints.create(url=url, event_types=["invoice.*"], owner_id="acme")
            self.nf.relay.messages.send(event_type="invoice.paid", owner_id="acme", message_id="m1", payload={"n": "☃"})
            until(lambda: received)
        finally:
            receiver.shutdown()
            receiver.server_close()
        headers, body = received[0]
        delivery = verify_webhook(headers, body, endpoint["secret"])
        self.assertEqual(delivery.json()["data"], {"n": "☃"})
        with self.assertRaises(NinefoldError):
            verify_webhook(headers, body + b" ", endpoint["secret"])


class Names(Case):
    def test_every_method_of_the_typescript_client_is_there(self) -> None:
        missing = []
        for path, method in json.loads(os.environ["NINEFOLD_TEST_METHODS"]):
            target: Any = self.nf.meter("x") if path == "meter" else self.nf
            for name in [] if path in ("", "meter") else path.split("."):
                target = getattr(target, name, None)
            if not callable(getattr(target, method, None)):
                missing.append(f"{path}.{method}")
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
