"""A client of PostgreSQL that speaks lines, over PostgreSQL's own protocol (version 3, simple queries, without a
password): one statement for each request, which is a transaction of its own, or a transaction of several; and
nothing tried again.

What matters is the word that ends each operation:
  ok    the server said that it is done.
  fail  it CERTAINLY had no effect: the request never left, or the server rolled it back.
  info  nobody knows. When in doubt, this one: a wrong fail accuses PostgreSQL of what the client did.
"""
import json
import os
import select
import socket
import struct
import sys
import time

USER = os.environ.get("PGUSER", "app")
DATABASE = os.environ.get("PGDATABASE", USER)

# An ERROR of these classes rolled the statement back: 23 a constraint (two made a table at once), 25 read-only (a
# replica), 40 a conflict or a deadlock, 42 no such table, 55 a lock that took too long. Whatever else is said, as
# by a server that goes down, leaves open whether the commit came first.
ROLLED_BACK = ("23", "25", "40", "42", "55")
COMPLETION_UNKNOWN = "40003"
NO_TABLE = "42P01"
# A standby knows no serializable transactions.
NOT_SUPPORTED = "0A000"

# What a transaction of several statements asks for: serializable, repeatable read or read committed.
ISOLATION = os.environ.get("ISOLATION", "serializable")

TABLES = (
    "CREATE TABLE IF NOT EXISTS registers (key int PRIMARY KEY, value bigint, version bigint)",
    "CREATE TABLE IF NOT EXISTS sets (key int, element bigint, PRIMARY KEY (key, element))",
    "CREATE TABLE IF NOT EXISTS lists (key int PRIMARY KEY, elements bigint[])",
    "CREATE TABLE IF NOT EXISTS accounts (bank int, account int, balance bigint, PRIMARY KEY (bank, account))",
)

# A replica answers a read from the past. It is asked all the same: at the end the bench reads all members, to see
# what each of them has. A primary that was deposed and does not know it yet answers from the past too, even in
# synchronous mode: what changes nothing waits for no replica. So no read claims to be a fresh one here, and neither
# does a comparison that found another value; the promise linearizable-updates allows that. READS=primary has
# replicas refuse, and the primary's answers claim to be fresh. Nobody reads the replicas then, so a run is a
# violation or unknown, and never valid.
FROM_PRIMARY = os.environ.get("READS") == "primary"


class NotSent(Exception):
    """The request never left this process."""


class Refused(Exception):
    """The server rolled it back, or was not asked to do anything."""


class Unknown(Exception):
    """The server does not know either."""


class NoTable(Exception):
    """The server refused it, because nobody has made the tables yet."""


class RolledBack(Exception):
    """The connection is of no more use, and nobody had asked to commit: the server rolls that back."""


class Connection:
    def __init__(self, member, seconds):
        host, port = member.rsplit(":", 1)
        self.until = time.monotonic() + seconds
        # Who waits for a row longer than its client waits gives up: its transaction is rolled back. There is no
        # statement_timeout, because it would end a commit's wait for a replica, and call that a success.
        options = f"-c lock_timeout={int(seconds * 1000)}"
        words = ("user", USER, "database", DATABASE, "options", options, "")
        body = struct.pack("!i", 3 << 16) + b"".join(word.encode() + b"\0" for word in words)
        try:
            self.socket = socket.create_connection((host, int(port)), timeout=seconds)
        except OSError as error:
            raise NotSent from error
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.file = self.socket.makefile("rb")
            self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
            self.answered()
        except Exception as error:
            # Whatever happens before the server is ready, no request has left.
            self.close()
            raise NotSent from error

    def is_over(self):
        """Whether anything came that nobody asked for, as the end does. Then it is of no more use."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def ask(self, seconds, statement):
        """The rows of the answer, and how many were found or changed."""
        self.until = time.monotonic() + seconds
        body = statement.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!i", len(body) + 4) + body)
        return self.answered()

    def exactly(self, count):
        self.socket.settimeout(max(0.001, self.until - time.monotonic()))
        data = self.file.read(count)
        if len(data) != count:
            raise EOFError
        return data

    def answered(self):
        """Reads until the server is ready for the next statement."""
        rows, tag, error = [], "", None
        while True:
            kind, length = struct.unpack("!ci", self.exactly(5))
            body = self.exactly(length - 4)
            if kind == b"D":
                rows.append(columns(body))
            elif kind == b"C":
                tag = body[:-1].decode()
            elif kind == b"R" and body[:4] != b"\0\0\0\0":
                raise Refused("the server asks for a password")
            elif kind == b"E":
                error = failure(fields(body))
                if not isinstance(error, (Refused, NoTable)):
                    # The server may not become ready again.
                    raise error
            elif kind == b"N" and fields(body).get("V") == "WARNING":
                # "The transaction has already committed locally, but might not have been replicated to the
                # standby": the server goes on to call it a success. It is on one member, perhaps, so nobody knows.
                error = Unknown(fields(body).get("M"))
            elif kind == b"Z":
                self.in_transaction = body != b"I"
                if error is not None:
                    raise error
                last = tag.rsplit(" ", 1)[-1]
                return rows, int(last) if last.isdigit() else 0

    def close(self):
        self.socket.close()


def columns(body):
    """The columns of a row, as text; None is NULL."""
    found, at = [], 2
    for _ in range(struct.unpack_from("!h", body)[0]):
        length = struct.unpack_from("!i", body, at)[0]
        at += 4
        found.append(None if length < 0 else body[at:at + length].decode())
        at += max(0, length)
    return found


def fields(body):
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def failure(said):
    code, words = said.get("C", ""), f"{said.get('C')} {said.get('M')}"
    if said.get("V") == "ERROR" and code == NOT_SUPPORTED:
        return Refused(words, code)
    if said.get("V") != "ERROR" or code[:2] not in ROLLED_BACK or code == COMPLETION_UNKNOWN:
        return Unknown(words)
    return NoTable(words) if code == NO_TABLE else Refused(words)


def asked_of(ask, columns, table, where):
    """The rows of a read that is a statement of its own; one row of NULLs where there is none. A standby says no where
    the primary alone is to be read."""
    # What the server is, in the same statement.
    rows, _ = ask(f"SELECT standby, {columns} FROM pg_is_in_recovery() AS standby LEFT JOIN {table} ON {where}")
    if FROM_PRIMARY and rows[0][0] != "f":
        raise Refused("a standby")
    return [row[1:] for row in rows]


def read(ask, of, key):
    table, value = {"register": ("registers", "value, version"), "set": ("sets", "element"),
                    "list": ("lists", "elements")}[of]
    rows = asked_of(ask, value, table, f"key = {key}")
    if of == "register":
        value, version = rows[0]
        # None, where there was a value before, is a lost write: say what the server says.
        found = {"value": None if value is None else int(value)}
        return {**found, "version": int(version)} if FROM_PRIMARY and version is not None else found
    if of == "set":
        return {"value": [int(element) for element, in rows if element is not None]}
    elements = (rows[0][0] or "{}").strip("{}")
    return {"value": [int(element) for element in elements.split(",") if element]}


def micro(ask, f, key, value):
    if f == "append":
        ask(f"INSERT INTO lists VALUES ({key}, ARRAY[{value}]) ON CONFLICT (key) DO UPDATE "
            "SET elements = lists.elements || excluded.elements")
        return [f, key, value]
    rows, _ = ask(f"SELECT elements FROM lists WHERE key = {key}")
    elements = (rows[0][0] if rows else "{}").strip("{}")
    return [f, key, [int(element) for element in elements.split(",") if element]]


def micros(ask, request):
    return [micro(ask, *one) for one in request["value"]]


def transfer(ask, request):
    bank, (payer, payee, amount) = int(request["key"]), request["value"]
    rows, _ = ask(f"SELECT account, balance FROM accounts WHERE bank = {bank} AND account IN ({payer}, {payee})")
    balances = {int(account): int(balance) for account, balance in rows}
    if payer not in balances or payee not in balances:
        raise Refused("there is no such account")
    if balances[payer] < amount:
        raise Refused("too little is there")
    # What was read is what is written: a level that lets another transaction in between shows it.
    for account, balance in ((payer, balances[payer] - amount), (payee, balances[payee] + amount)):
        ask(f"UPDATE accounts SET balance = {balance} WHERE bank = {bank} AND account = {account}")


def transaction(connection, ask, work, request, seconds):
    committing = False
    try:
        # Two that wait for each other are refused before their clients give up.
        begun, _ = ask(f"BEGIN ISOLATION LEVEL {ISOLATION}; SET LOCAL lock_timeout = {int(seconds * 300)}; "
                       "SELECT pg_is_in_recovery()")
        if begun[0][0] != "f":
            raise Refused("a standby", NOT_SUPPORTED)
        told = work(ask, request)
        committing = True
        ask("COMMIT")
        return {"type": "ok", "value": told}
    except (Refused, NoTable) as error:
        # The error ended what was done, and not the transaction.
        if connection.in_transaction:
            connection.ask(seconds, "ROLLBACK")
        if request["f"] == "transfer":
            raise
        f, key, _ = request["value"][0]
        if error.args[1:] == (NOT_SUPPORTED,) and len(request["value"]) == 1 and f == "r":
            # The bench looks at every member at the end. One read alone is out of step with nobody, however old it
            # is; a transaction of several on a standby may see two commits in another order than the primary.
            return {"type": "ok", "value": [[f, key, read(ask, "list", key)["value"]]]}
        raise
    except Exception as error:
        if committing:
            raise
        raise RolledBack(repr(error)) from error


TRANSACTIONS = {"txn": micros, "transfer": transfer}


def perform(ask, request):
    f, of, key, value = request["f"], request["of"], int(request["key"]), request["value"]
    more = {}
    if f == "read":
        more = read(ask, of, key)
    elif f == "write":
        rows, _ = ask(f"INSERT INTO registers VALUES ({key}, {value}, 0) ON CONFLICT (key) DO UPDATE "
                      "SET value = excluded.value, version = registers.version + 1 RETURNING version")
        more = {"version": int(rows[0][0])}
    elif f == "cas":
        rows, count = ask(f"UPDATE registers SET value = {value[1]}, version = version + 1 "
                          f"WHERE key = {key} AND value = {value[0]} RETURNING version")
        if count == 0:
            # A mismatch is an observation, which is judged as a read is.
            return {"type": "fail", "error": "mismatch" if FROM_PRIMARY else "refused: another value"}
        more = {"version": int(rows[0][0])}
    elif f == "add":
        ask(f"INSERT INTO sets VALUES ({key}, {value}) ON CONFLICT DO NOTHING")
    elif f == "open-account":
        ask(f"INSERT INTO accounts VALUES ({key}, {value[0]}, {value[1]}) ON CONFLICT DO NOTHING")
    elif f == "balances":
        # One statement reads one state.
        rows = asked_of(ask, "balance", "accounts", f"bank = {key} ORDER BY account")
        more = {"value": [int(balance) for balance, in rows if balance is not None]}
    elif f == "append":
        # One row for each list: the row's lock puts those who append in one order, which readers see.
        ask(f"INSERT INTO lists VALUES ({key}, ARRAY[{value}]) ON CONFLICT (key) DO UPDATE "
            "SET elements = lists.elements || excluded.elements")
    else:
        return {"type": "fail", "error": "unsupported"}
    return {"type": "ok", **more}


def connected(connections, member, seconds):
    """The connection to this member. One that ended while nobody asked anything is replaced: that is no other
    try, as nothing was sent."""
    if member in connections and connections[member].is_over():
        connections.pop(member).close()
    if member not in connections:
        connections[member] = Connection(member, seconds)
    return connections[member]


def dropped(connections, member):
    """The next request has a connection of its own."""
    if member in connections:
        connections.pop(member).close()


def answer(connections, request):
    member, seconds = request.get("member"), request["timeout_ms"] / 1000
    if "of" not in request:
        return {"type": "fail", "error": "unsupported"}
    until = time.monotonic() + seconds
    try:
        connection = connected(connections, member, seconds)
        ask = lambda statement: connection.ask(until - time.monotonic(), statement)
        if request["f"] in TRANSACTIONS:
            return transaction(connection, ask, TRANSACTIONS[request["f"]], request, seconds)
        return perform(ask, request)
    except NotSent as error:
        return {"type": "fail", "error": "not-sent", "why": repr(error.__cause__)}
    except Refused as error:
        return {"type": "fail", "error": f"refused: {error.args[0]}"}
    except RolledBack as error:
        dropped(connections, member)
        return {"type": "fail", "error": f"not committed: {error}"}
    except NoTable:
        # The operation is over. The tables are for the next one, and whatever becomes of them shows there.
        try:
            for table in TABLES:
                connection.ask(seconds, table)
        except Exception:
            dropped(connections, member)
        return {"type": "fail", "error": "refused: there were no tables"}
    except Exception as error:
        # Whatever it is, no answer was understood, and the request may have arrived. And a connection with an answer
        # on its way is of no more use: the next request would be given that answer.
        dropped(connections, member)
        return {"type": "info", "error": repr(error)}


def main():
    connections = {}
    functions = ["read", "write", "cas", "add", "append", "txn", "open-account", "transfer", "balances"]
    print(json.dumps({"f": "hello", "protocol": 1, "functions": functions}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        # Whoever is asked answers for itself: nobody sends this client on.
        told = {"id": request["id"], "by": request["member"], **answer(connections, request)}
        print(json.dumps(told), flush=True)


main()
