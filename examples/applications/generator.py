#!/usr/bin/env python3
"""Snowflake IDs that a Python program generates itself, with a machine ID that a registry leases to it.

Packages: python3-psycopg

docs/application-ids.md describes the protocol. Generators are safe in threads, and not in processes
that fork. As a program, this file reads commands and prints IDs, as conformance.pl specifies.
"""
import contextlib
import os
import random
import re
import socket
import sys
import threading
import time
import uuid
from datetime import datetime, timedelta, timezone

import psycopg

INSTANT = "timestamptz '1970-01-01 00:00:00Z' + %({})s::bigint * interval '1 microsecond'"
COMMIT = "CALL snowflake_registry.commit({}, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
LENGTH = f"%(length)s::integer * interval '1 second', {INSTANT.format('clock')}, %(holder)s, %(known)s::bigint)"
CLAIM = COMMIT.format(
    f"snowflake_registry.claim(%(token)s::uuid, %(layout)s, %(machine_bits)s::integer, NULL, {LENGTH}")
RENEW = COMMIT.format(f"""snowflake_registry.renew(%(token)s::uuid, %(machine_id)s::integer, {INSTANT.format('from')},
    {INSTANT.format('until')}, {LENGTH}""")
RELEASE = COMMIT.format(f"""ROW(NULL, NULL, NULL, NULL, NULL, snowflake_registry.release(%(token)s::uuid,
    {INSTANT.format('used_until')}, %(known)s::bigint)::text, NULL)""")

FAILURES = {
    "claiming": "before the first answer of the registry",
    "held": "after the end of the lease",
    "refused": "without a lease of a machine ID",
    "unreachable": "while the registry is unreachable",
    "released": "after the release of the machine ID",
}


class SnowflakeError(Exception):
    """No ID was issued. sqlstate is that of the same error of snowflake_nextval()."""

    def __init__(self, sqlstate, reason, detail=None):
        super().__init__(f"could not generate a Snowflake ID {reason}" + (f": {detail}" if detail else ""))
        self.sqlstate = sqlstate


class Generator:
    """registry: connection string. layout: definition, as the view snowflake_layouts shows it. lease: its
    length in seconds. max_wait: longest wait of a call in seconds. Times are in microseconds since 1970."""

    def __init__(self, registry, layout, lease=60, max_wait=5, holder=None):
        fields = dict(field.split("=") for field in layout.split())
        epoch = datetime.fromisoformat(fields["epoch"].replace("Z", "+00:00"))
        number, unit = re.fullmatch(r"(\d+)(us|ms|s)", fields["tick"]).groups()
        self.epoch = (epoch - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
        self.tick_length = int(number) * {"us": 1, "ms": 1000, "s": 1000000}[unit]
        self.bits = {name: int(fields.get(name, 0)) for name in ("timestamp", "machine", "sequence")}
        self.shift, shift = {}, 0
        for name in [name for name in reversed(fields) if name in self.bits]:
            self.shift[name] = shift
            shift += self.bits[name]
        self.registry, self.layout, self.length, self.max_wait = registry, layout, lease, max_wait
        self.holder = holder or f"{os.uname().nodename}:{os.getpid()}"
        self.token, self.identity, self.process = str(uuid.uuid4()), None, os.getpid()
        self.tick = self.sequence = 0    # of the next ID: they only move forward
        self.lease = None                # machine_id, from, until, and ends, by the monotonic clock
        self.known = 0                   # greatest lease number
        self.state, self.reason = "claiming", None
        self.asked, self.delay, self.draw = 0, 0, 0
        self.lock, self.closed = threading.Lock(), threading.Event()
        self.worker = threading.Thread(target=self._work, daemon=True)
        self.worker.start()

    def nextval(self):
        return self.nextvals(1)[0]

    def nextvals(self, count):
        """IDs in ascending order; all are lost if an error is raised."""
        ids, deadline = [], time.monotonic() + self.max_wait
        self._check_process()
        while True:
            with self.lock:
                problem, wait = self._issue(ids, count)
            if len(ids) == count:
                return ids
            wait = min(wait, deadline - time.monotonic())
            if problem and wait <= 0:
                raise problem
            time.sleep(max(wait, 0))

    def _issue(self, ids, count):
        """Append IDs to the list; if there are too few, return the error and the seconds to wait first."""
        now = (time.time_ns() // 1000 - self.epoch) // self.tick_length
        if not self._is_usable(now):
            waits = self.state in ("claiming", "held")    # else the registry's last answer was no lease
            return SnowflakeError("55000", FAILURES[self.state], self.reason), 0.01 if waits else 0
        if now >> self.bits["timestamp"]:
            raise SnowflakeError("2200H", "after the last timestamp of the layout")
        if self.tick < now:
            self.tick, self.sequence = now, 0
        while len(ids) < count and self.tick == now:
            ids.append(self.tick << self.shift["timestamp"] | self.lease["machine_id"] << self.shift.get("machine", 0)
                       | self.sequence << self.shift.get("sequence", 0))
            self.sequence += 1
            if self.sequence >> self.bits["sequence"]:
                self.tick, self.sequence = self.tick + 1, 0
        missing = self.tick * self.tick_length + self.epoch - time.time_ns() // 1000
        detail = f"The next ID can be issued in {max(missing, 0) / 1e6:g} s."
        return SnowflakeError("53400", f"within {self.max_wait:g} s", detail), min(max(missing / 1e6, 1e-6), 0.1)

    def _ceiling(self, instant):
        """The first tick that does not begin before an instant."""
        return -((self.epoch - instant) // self.tick_length)

    def _is_usable(self, tick):
        return (self.state != "released" and self.lease and tick < self._ceiling(self.lease["until"])
                and time.monotonic() < self.lease["ends"])

    def _check_process(self):
        if os.getpid() != self.process:
            raise SnowflakeError("55000", "in another process than that of the generator")

    def _work(self):
        while not self.closed.wait(min(max(self._due(), 0), 1)):
            if self._due() <= 0:
                self._ask()

    def _due(self):
        """Seconds until the registry is asked: between 3/8 and 1/2 of the lease, by both clocks."""
        part, since = (3 + self.draw) / 8, time.monotonic() - self.asked
        now = time.time_ns() // 1000
        if self.state == "held":
            return min(part * self.length - since, (self.lease["until"] - now) / 1e6 - (1 - part) * self.length)
        usable = self._is_usable((now - self.epoch) // self.tick_length)
        return min(self.delay, self.length / 8 if usable else 1) * (1 - self.draw / 2) - since

    def _ask(self):
        try:
            with self._connect() as connection:
                answer = self._call(connection, RENEW) if self.lease else None
                if not answer or answer[5]:
                    answer = self._call(connection, CLAIM)
            state, reason = ("refused", answer[5]) if answer[5] else ("held", None)
        except psycopg.Error as error:
            state, reason = "refused" if error.sqlstate else "unreachable", str(error).strip()
        self.delay = 0 if state == "held" else min(max(2 * self.delay, 0.25), 60)
        self.asked, self.draw = time.monotonic(), random.random()
        with self.lock:
            if self.state != "released":
                self.state, self.reason = state, reason

    @contextlib.contextmanager
    def _connect(self):
        """A connection for 5 seconds, to the registry that was asked first: another one can grant the same lease."""
        with psycopg.connect(self.registry, autocommit=True, connect_timeout=5) as connection:
            with socket.socket(fileno=os.dup(connection.fileno())) as stream:
                timer = threading.Timer(5, stream.shutdown, [socket.SHUT_RDWR])
                timer.start()
                try:
                    identity, = connection.execute("SELECT snowflake_registry.identity()").fetchone()
                    self.identity = self.identity or identity
                    if identity != self.identity:
                        raise psycopg.OperationalError(f"this is registry {identity}, not registry {self.identity}")
                    yield connection
                finally:
                    timer.cancel()

    def _call(self, connection, query):
        monotonic, clock = time.monotonic(), time.time_ns() // 1000
        answer = connection.execute(query, {
            "token": self.token, "layout": self.layout, "machine_bits": self.bits["machine"], "length": self.length,
            "clock": clock, "holder": self.holder, "known": self.known, **(self.lease or {})}).fetchone()
        machine_id, start, until, number, _, refusal, _ = answer
        if not refusal:
            with self.lock:
                lease = self.lease
                self.lease = {"machine_id": machine_id, "from": start, "until": until,
                              "ends": monotonic + (until - clock) / 1e6}
                self.known = number
                if not lease or (lease["machine_id"], lease["from"]) != (machine_id, start):
                    self.tick = max(self.tick + (self.sequence > 0), self._ceiling(start))
                    self.sequence = 0
        return answer

    def close(self):
        """Issue no more IDs, and release the rest of the lease. If that fails, the lease runs out."""
        self._check_process()
        with self.lock:
            self.state = "released"
        self.closed.set()
        self.worker.join()
        used_until = (self.tick + (self.sequence > 0)) * self.tick_length + self.epoch
        with contextlib.suppress(psycopg.Error):
            if self.lease:
                with self._connect() as connection:
                    connection.execute(RELEASE, {"token": self.token, "known": self.known, "used_until": used_until})


def main():
    settings = {name: os.environ["SNOWFLAKE_" + name.upper()] for name in ("registry", "layout", "lease", "holder")}
    generator = Generator(**{**settings, "lease": int(settings["lease"])})
    for line in sys.stdin:
        command, *count = line.split()
        try:
            if command == "close":
                generator.close()
            print("closed" if command == "close" else " ".join(map(str, generator.nextvals(int(count[0])))), flush=True)
        except SnowflakeError as error:
            print("error", error.sqlstate, " ".join(str(error).split()), flush=True)


if __name__ == "__main__":
    main()
