"""record: what holds for the events of a session, as they were shown and as the journal keeps
them. Each check raises Unfit with what is wrong."""

import json
import os
import re
import sqlite3

from world import Unfit, fits, short

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "events.md")


def check_record(events, killed):
    """What holds in every session: numbers without a gap, each call answered once."""
    numbers = [event["n"] for event in events if "n" in event]
    if numbers != list(range(1, len(numbers) + 1)):
        raise Unfit(f"the kept events are numbered {numbers}")
    asked, answered, began = [], [], []
    for event in events:
        if event["event"] == "message":
            asked += [p["call"] for p in event["parts"] if p["kind"] == "call"]
        elif event["event"] == "tool_began":
            began.append(event["call"])
        elif event["event"] == "tool_ended":
            answered.append(event["call"])
    if len(set(asked)) != len(asked):
        raise Unfit(f"ids of calls are not unique: {asked}")
    if sorted(answered) != sorted(set(answered)):
        raise Unfit(f"a call was answered twice: {answered}")
    if set(asked) - set(answered) and not killed:
        raise Unfit(f"calls without an answer: {sorted(set(asked) - set(answered))}")
    if set(began) - set(answered) and not killed:
        raise Unfit(f"calls began and did not end: {sorted(set(began) - set(answered))}")


def read_manual():
    """docs/events.md: kind -> what its section names in backquotes."""
    with open(MANUAL, encoding="utf-8") as file:
        sections = re.split(r"^## `(\w+)`$", file.read(), flags=re.M)[1:]
    named = {kind: set(re.findall(r"`(\w+)`", text))
             for kind, text in zip(sections[::2], sections[1::2])}
    named["session_resumed"] |= named["session_began"]
    return named


def check_documented(events, named):
    """Whoever reads events by the manual knows all members there are."""
    for event in events:
        unknown = set(event) - {"event", "n", "time_ms", "call", "tool"}
        unknown -= named.get(event["event"], set())
        if unknown:
            raise Unfit(f"docs/events.md does not name {sorted(unknown)}: {short(event)}")


def kept_events(folder):
    """(session, event) of all in the journal."""
    path = os.path.join(folder, "state", "glovebox", "sessions.db")
    if not os.path.exists(path):
        return []
    database = sqlite3.connect(path)
    try:
        rows = database.execute(
            "SELECT id, json FROM event JOIN session ON session = key ORDER BY number").fetchall()
    finally:
        database.close()
    return [(name, json.loads(text)) for name, text in rows]


def check_journal(events, folder, killed):
    """What was shown is what is kept; of a run that was killed, at least what was shown.
    Sessions of delegates are kept apart, and each event of theirs that was shown is there."""
    rows = kept_events(folder)
    if not rows:
        if events:
            raise Unfit("the session is in no journal")
        return
    shown = [event for event in events if "n" in event]
    session = shown[0].get("session") if shown else None
    kept = [event for name, event in rows if name == session]
    for child in (event for event in events if event["event"] == "child"):
        inner = child["event_of"]
        if "n" in inner and (child["session"], inner) not in rows:
            raise Unfit(f"an event of a delegate is in no journal: {short(inner)}")
    if kept != shown and not (killed and kept[:len(shown)] == shown):
        raise Unfit("the journal holds other events than were shown")


def check_sessions(case, folder):
    """The sessions that the journal lists, oldest first; `parent`: the agent of the one above."""
    path = os.path.join(folder, "state", "glovebox", "sessions.db")
    database = sqlite3.connect(path)
    try:
        rows = database.execute(
            "SELECT id, agent, json FROM session JOIN event ON session = key"
            " WHERE number = 1 ORDER BY key").fetchall()
    finally:
        database.close()
    agents = {row[0]: row[1] for row in rows}
    got = []
    for row in rows:
        above = json.loads(row[2]).get("parent")
        got.append({"agent": row[1], "parent": agents.get(above) if above else None})
    if got != case["sessions"]:
        raise Unfit(f"the journal has the sessions {short(got)}")


def check_state(case, folder):
    """Rows of databases in the state folder: {"facts.db": {QUERY: rows}}."""
    for name, queries in case["state"].items():
        database = sqlite3.connect(os.path.join(folder, "state", "glovebox", name))
        try:
            for query, wanted in queries.items():
                got = [list(row) for row in database.execute(query).fetchall()]
                if not fits(wanted, got):
                    raise Unfit(f"{name}: {query}: {short(got)}")
        finally:
            database.close()
