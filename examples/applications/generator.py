"""Snowflake IDs that a Python program generates itself, with a machine ID from a registry; version 1.0.

Packages: python3-psycopg

docs/application-ids.md describes the protocol. Generators are safe in threads, and not in processes
that fork. As a program, this file reads commands and prints IDs, as conformance.pl specifies.
"""
import contextlib
import itertools
import os
import random
import re
import socket
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

# script/layouts writes these definitions. A layout without machine IDs is of no use here.
PRESETS = {
    "twitter": "epoch=2010-11-04T01:42:54.657Z tick=1ms timestamp=41 machine=10 sequence=12",
    "discord": "epoch=2015-01-01T00:00:00Z tick=1ms timestamp=41 machine=10 sequence=12",
    "instagram": "epoch=2011-08-24T21:07:01.721Z tick=1ms timestamp=40 machine=13 sequence=10",
    "sonyflake": "epoch=2014-09-01T00:00:00Z tick=10ms timestamp=39 sequence=8 machine=16",
    "pgedge": "epoch=2023-01-01T00:00:00Z tick=1ms timestamp=41 machine=10 sequence=12",
    "javascript": "epoch=2020-01-01T00:00:00Z tick=1ms timestamp=41 machine=5 sequence=7",
}

INSTANT = "timestamptz '1970-01-01 00:00:00Z' + %({})s::bigint * interval '1 microsecond'"
# A registry that is not the expected one does nothing, and returns its identity as lease_number.
COMMIT = """CALL snowflake_registry.commit(CASE WHEN snowflake_registry.identity() = %(identity)s::bigint THEN {}
    ELSE ROW(NULL, NULL, NULL, snowflake_registry.identity(), NULL, NULL, NULL)::snowflake_registry.answer END,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""
LENGTH = f"%(length)s::integer * interval '1 second', {INSTANT.format('clock')}, %(holder)s, %(known)s::bigint)"
CLAIM = COMMIT.format(
    f"snowflake_registry.claim(%(token)s::uuid, %(layout)s, %(machine_bits)s::integer, NULL, {LENGTH}")
RENEW = COMMIT.format(f"""snowflake_registry.renew(%(token)s::uuid, %(machine_id)s::integer, {INSTANT.format('from')},
    {INSTANT.format('until')}, {LENGTH}""")
RELEASE = COMMIT.format(f"""ROW(NULL, NULL, NULL, NULL, NULL, snowflake_registry.release(%(token)s::uuid,
    {INSTANT.format('used_until')}, %(known)s::bigint)::text, NULL)::snowflake_registry.answer""")

FAILURES = {
    "claiming": "before the first answer of the registry",
    "held": "after the end of the lease",
    "refused": "without a lease of a machine ID",
    "unreachable": "while the registry is unreachable",
    "released": "after the release of the machine ID",
}


class SnowflakeError(Exception):
    """No ID was issued. sqlstate is the SQLSTATE of the same error of snowflake_nextval()."""

    def __init__(self, sqlstate, reason, detail=None):
        super().__init__(f"could not generate a Snowflake ID {reason}" + (f": {detail}" if detail else ""))
        self.sqlstate = sqlstate


class Generator:
    """registry: connection string; several hosts are tried in turn. layout: preset, or definition as the view
    snowflake_layouts shows it. lease: its length in seconds. max_wait: longest wait of a call in seconds.
    Times are in microseconds since 1970."""

    def __init__(self, registry, layout, lease=60, max_wait=5, holder=None):
        self.layout = PRESETS.get(layout, layout)
        match = re.fullmatch(r"epoch=(\S+)Z tick=(\d+)(us|ms|s) (timestamp=\d+(?: (?:machine|sequence)=\d+)+)", self.layout)
        fields = dict(field.split("=") for field in match[4].split()) if match else {}
        if "machine" not in fields:
            raise ValueError(f"layout must be {', '.join(PRESETS)}, or a definition with machine IDs, not {layout}")
        epoch = datetime.fromisoformat(match[1] + "+00:00")
        self.epoch = (epoch - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
        self.tick_length = int(match[2]) * {"us": 1, "ms": 1000, "s": 1000000}[match[3]]
        self.bits, self.shift, shift = {"sequence": 0}, {"sequence": 0}, 0
        for name in reversed(fields):
            self.bits[name], self.shift[name] = int(fields[name]), shift
            shift += self.bits[name]
        self.addresses, self.length, self.max_wait = self._addresses(registry), lease, max_wait
        self.holder = holder or f"{os.uname().nodename}:{os.getpid()}"
        self.token, self.identity, self.process = str(uuid.uuid4()), None, os.getpid()
        self.tick = self.sequence = 0    # of the next ID: they only move forward
        self.lease = None                # machine_id, from, until, and ends, by the monotonic clock
        self.known = 0                   # greatest lease number
        self.state, self.reason = "claiming", None
        self.asked, self.delay, self.draw = 0, 0, 0
        self.lock, self.closing, self.closed = threading.Lock(), threading.Lock(), threading.Event()
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
            if wait <= 0:
                raise SnowflakeError(*problem)
            time.sleep(wait)

    def _issue(self, ids, count):
        """Append IDs to the list; if there are too few, return the parts of the error, and the seconds to wait first."""
        now = (time.time_ns() // 1000 - self.epoch) // self.tick_length
        if not self._is_usable(now):
            waits = self.state in ("claiming", "held")    # else the registry's last answer was no lease
            return ("55000", FAILURES[self.state], self.reason), 0.05 if waits else 0
        if now >> self.bits["timestamp"]:
            return ("2200H", "after the last timestamp of the layout"), 0
        if self.tick < now:
            self.tick, self.sequence = now, 0
        while len(ids) < count and self.tick == now:
            ids.append(self.tick << self.shift["timestamp"] | self.lease["machine_id"] << self.shift["machine"]
                       | self.sequence << self.shift["sequence"])
            self.sequence += 1
            if self.sequence >> self.bits["sequence"]:
                self.tick, self.sequence = self.tick + 1, 0
        if len(ids) == count:
            return None, 0
        missing = max(self.tick * self.tick_length + self.epoch - time.time_ns() // 1000, 0) / 1e6
        problem = "53400", f"within {self.max_wait:g} s", f"The next ID can be issued in {missing:g} s."
        return problem, min(max(missing, 1e-6), 0.1)    # the clock can be set meanwhile

    def _ceiling(self, instant):
        """The first tick that does not begin before an instant."""
        return -((self.epoch - instant) // self.tick_length)

    def _is_usable(self, tick):
        return (self.state != "released" and self.lease and tick < self._ceiling(self.lease["until"])
                and time.monotonic() < self.lease["ends"])

    def _check_process(self):
        if os.getpid() != self.process:
            raise SnowflakeError("55000", "outside the process of the generator")

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
        return min(self.delay, self.length / 8 if usable else 60) * (1 - self.draw / 2) - since

    def _ask(self):
        try:
            answer = self._with_registry(self._renew_or_claim)
            state, reason = ("refused", answer[5]) if answer[5] else ("held", None)
        except Exception as error:    # of any kind: the worker must not end
            state = "refused" if getattr(error, "sqlstate", None) else "unreachable"
            reason = str(error).strip() or repr(error)
        self.delay = 0 if state == "held" else min(max(2 * self.delay, 0.25), 60)
        self.asked, self.draw = time.monotonic(), random.random()
        with self.lock:
            if self.state != "released":
                self.state, self.reason = state, reason

    def _renew_or_claim(self, connection):
        answer = self._call(connection, RENEW) if self.lease else None
        return answer if answer and not answer[5] else self._call(connection, CLAIM)

    @staticmethod
    def _addresses(registry):
        """A connection string for each host. libpq would limit the time for all of them together."""
        settings = conninfo_to_dict(registry)
        lists = {name: settings[name].split(",") for name in ("host", "hostaddr", "port") if name in settings}
        count = max(map(len, lists.values()), default=1)
        return [make_conninfo(registry, connect_timeout=5, **{name: values[i % len(values)] for name, values in lists.items()})
                for i in range(count)]

    def _with_registry(self, use):
        """Call a function with a connection to the first address for which it raises no error, which is first from then on."""
        for i in range(len(self.addresses)):
            try:
                with self._connect() as connection:
                    return use(connection)
            except Exception:
                self.addresses.append(self.addresses.pop(0))
                if i == len(self.addresses) - 1:
                    raise

    @contextlib.contextmanager
    def _connect(self):
        """A connection for 5 seconds after it is established."""
        with psycopg.connect(self.addresses[0], autocommit=True) as connection:
            with socket.socket(fileno=os.dup(connection.fileno())) as stream:
                timer = threading.Timer(5, stream.shutdown, [socket.SHUT_RDWR])
                timer.start()
                try:
                    yield connection
                finally:
                    timer.cancel()

    def _call(self, connection, query, **more):
        """Asks the registry that answered first, since another one can grant the same lease."""
        monotonic, clock = time.monotonic(), time.time_ns() // 1000
        answer = connection.execute(query, {
            "identity": self.identity, "token": self.token, "layout": self.layout, "machine_bits": self.bits["machine"],
            "length": self.length, "clock": clock, "holder": self.holder, "known": self.known, **(self.lease or {}),
            **more}).fetchone()
        machine_id, start, until, number, _, refusal, _ = answer
        if machine_id is None and not refusal and number:
            if self.identity:
                raise ValueError(f"this is registry {number}, not registry {self.identity}")
            self.identity = number
            return self._call(connection, query, **more)
        if query == RELEASE:
            return answer
        if not refusal and not (0 <= machine_id < 1 << self.bits["machine"] and start < until and number > 0):
            raise ValueError(f"the registry sent an invalid answer: {answer}")
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
        with self.closing:    # a second call returns when the first one has finished
            if self.closed.is_set():
                return
            with self.lock:
                self.state = "released"
            self.closed.set()
            self.worker.join()
            used_until = (self.tick + (self.sequence > 0)) * self.tick_length + self.epoch
            with contextlib.suppress(Exception):
                if self.lease:
                    self._with_registry(lambda connection: self._call(connection, RELEASE, used_until=used_until))


def in_threads(generator, threads, count):
    """The IDs of several threads at once, which take turns as often as possible."""
    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(threads) as pool:
        return itertools.chain(*pool.map(generator.nextvals, [count] * threads))


def in_child(generator, count):
    """The answer of a child process."""
    child = os.fork()
    if not child:
        answer(generator, "next", count)
        os._exit(0)
    os.waitpid(child, 0)


def answer(generator, command, *numbers):
    """Answer a command of conformance.pl."""
    try:
        if command == "fork":
            return in_child(generator, *numbers)
        if command == "close":
            generator.close()
            print("closed", flush=True)
        else:
            call = in_threads if command == "threads" else Generator.nextvals
            print(*call(generator, *numbers), flush=True)
    except SnowflakeError as error:
        print("error", error.sqlstate, " ".join(str(error).split()), flush=True)


def main():
    texts = {name: os.environ["SNOWFLAKE_" + name.upper()] for name in ("registry", "layout", "holder")}
    lease, max_wait = int(os.environ["SNOWFLAKE_LEASE"]), float(os.environ.get("SNOWFLAKE_MAX_WAIT", 5))
    generator = Generator(**texts, lease=lease, max_wait=max_wait)
    for line in sys.stdin:
        command, *counts = line.split()
        answer(generator, command, *map(int, counts))


if __name__ == "__main__":
    main()
