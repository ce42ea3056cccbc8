#!/usr/bin/env python3
"""Read the last words of the model from the transcript."""
import json
import sys

data = json.load(sys.stdin)
rows = [json.loads(line) for line in open(data["transcript_path"], encoding="utf-8")]
said = [part["text"] for row in rows if row["type"] == "assistant"
        for part in row["message"]["content"] if part["type"] == "text"]
print(json.dumps({"systemMessage": f"{len(rows)} rows, last: {said[-1] if said else 'nothing'}"}))
