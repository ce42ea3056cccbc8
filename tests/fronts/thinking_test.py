#!/usr/bin/env python3
"""--thinking: what a service is told of it, and where there is nothing to tell.

thinking_test.py TAP_FOLDER GLOVEBOX MODEL_SERVER"""
import sys

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402
from service import Person, service  # noqa: E402

OWN = """---
name: thinker
description: Thinks a little.
thinking_budget: 1500
---
Think.
"""


def told(*words, behaviour="normal"):
    """The body of the request of `glovebox run WORDS`, by an agent with a small budget of its own."""
    with Person() as person, service() as (url, asked):
        person.write(".config/glovebox/agents/thinker.md", OWN)
        done = person.run("run", "--agent", "thinker", *words, "hi", GLOVEBOX_BASE_URL=f"{url}/{behaviour}/v1",
                          ANTHROPIC_API_KEY="x", OPENAI_API_KEY="x")
        assert len(asked()) == 1, (done, asked())
        return asked()[0]["body"]


@tap.case
def a_level_is_an_effort():
    for words, effort in (((), "low"), (("--thinking", "default"), "low"), (("--thinking", "low"), "low"),
                          (("--thinking", "medium"), "medium"), (("--thinking=high",), "high")):
        body = told("--model", "anthropic:claude-opus-5", *words)
        assert body["output_config"]["effort"] == effort, (words, body)
        body = told("--model", "openai:gpt-5", *words)
        assert body["reasoning"]["effort"] == effort, (words, body)


@tap.case
def a_level_is_a_budget():
    assert told("--model", "anthropic:claude-opus-4-5")["thinking"]["budget_tokens"] == 1500
    body = told("--model", "anthropic:claude-opus-4-5", "--thinking", "medium")
    assert body["thinking"]["budget_tokens"] == 8192, body


@tap.case
def a_model_without_levels_is_not_asked():
    with Person() as person, service() as (url, asked):
        at = {"GLOVEBOX_BASE_URL": f"{url}/normal/v1", "OPENAI_API_KEY": "x"}
        for model in "some", "openai:gpt-4.1", "replay":
            done = person.run("run", "--model", model, "--thinking", "high", "hi", **at)
            assert done.returncode == 1 and "is not known to take a level of thinking" in done.stderr, done
        done = person.run("run", "--model", "openai:gpt-5", "--thinking", "huge", "hi", **at)
        assert done.returncode == 2 and "the levels are default, low, medium and high" in done.stderr, done
        assert asked() == []
        done = person.run("run", "--model", "some", "--thinking", "default", "hi", **at)
        assert done.returncode == 0 and len(asked()) == 1, done


tap.play()
