#!/usr/bin/env python3
"""Add what the model should know to each prompt, as plain text."""
import json
import sys

prompt = json.load(sys.stdin)["prompt"]
print(f"Answer in English. The prompt has {len(prompt.split())} words.")
