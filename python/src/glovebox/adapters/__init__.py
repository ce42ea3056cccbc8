"""
Cells as the sandboxes of other people's harnesses, one module for each: inspect_ai, minisweagent, swerex, deepagents,
openai_agents and harbor. A module imports its harness when it is imported itself, and names the release that it was
written against. docs/adapters.md has an example of each.
"""
