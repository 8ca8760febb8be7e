"""The fault `compact` of etcd.toml: etcd forgets what keys were before now.

    python3 etcd_compact.py compact HOST:PORT FILE     compacts, and notes the revision in FILE
    python3 etcd_compact.py seen HOST:PORT FILE        ends with 0 where what was before that is forgotten

A compaction is for good, so `seen` asks for this one: FILE has the name of the fault in it.
"""

import json
import sys
import urllib.error
import urllib.request

WHAT_KEYS_WERE = "required revision has been compacted"


def asked(member, what, request):
    """The answer, or what the member says against it."""
    data = json.dumps(request).encode()
    try:
        with urllib.request.urlopen(f"http://{member}/v3/kv/{what}", data=data, timeout=5) as answer:
            return json.load(answer), ""
    except urllib.error.HTTPError as error:
        return None, error.read().decode(errors="replace")


deed, member, file = sys.argv[1:]
if deed == "compact":
    found, error = asked(member, "range", {"key": "AA=="})
    revision = int(found["header"]["revision"]) if found else sys.exit(error)
    _, error = asked(member, "compaction", {"revision": revision, "physical": True})
    # The members are asked at once: another one may have done it by now.
    if error and WHAT_KEYS_WERE not in error:
        sys.exit(error)
    with open(file, "w", encoding="ascii") as note:
        note.write(str(revision))
else:
    try:
        with open(file, encoding="ascii") as note:
            revision = int(note.read())
    except FileNotFoundError:
        sys.exit(1)
    # At this member, whatever the others know.
    _, error = asked(member, "range", {"key": "AA==", "revision": revision - 1, "serializable": True})
    sys.exit(0 if WHAT_KEYS_WERE in error else 1)
