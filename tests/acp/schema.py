"""schema: is a message one of the Agent Client Protocol, version 1?

The schema is that of the package @agentclientprotocol/sdk, in the file that $ACP_SCHEMA names, or where dev/npm has put
the clients of tests/conformance. Where it is not, nothing is checked, and acp_test.py says so in a case of its own;
tests/conformance/editors plays acp_test.py with it. The schema allows every member that it does not know; here such a
member is an error, because it is a misspelt one.
"""
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.environ.get("ACP_SCHEMA") or os.path.join(
    HERE, "..", "..", "build", "conformance", "node_modules", "@agentclientprotocol", "sdk", "schema", "v1", "schema.json")
WORDS = {"description", "title", "x-deserialize-default-on-error", "x-deserialize-skip-invalid-items",
         "x-docs-ignore", "discriminator", "default", "format"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def bare(schema):
    """SCHEMA without the words for people."""
    if isinstance(schema, dict):
        return {key: {name: bare(part) for name, part in value.items()} if key in ("properties", "$defs")
                else bare(value) for key, value in schema.items() if key not in WORDS}
    return [bare(part) for part in schema] if isinstance(schema, list) else schema


def is_type(value, name):
    if name in ("integer", "number"):
        kinds = int if name == "integer" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


class Schema:
    def __init__(self):
        self.is_there = os.path.exists(PATH)
        self.root = {"$defs": {}}
        if self.is_there:
            with open(PATH, encoding="utf-8") as file:
                self.root = bare(json.load(file))
        self.of_method = {}
        for name, schema in self.root["$defs"].items():
            if "x-method" in schema:
                kind = "Response" if name.endswith("Response") else "Params"
                self.of_method[(schema["x-method"], kind)] = schema

    def look(self, schema, value, at):
        """The faults of VALUE, and the members of it that SCHEMA knows."""
        if schema is True:
            return [], set(value) if isinstance(value, dict) else set()
        faults, known = [], set()
        if "$ref" in schema:
            more, names = self.look(self.root["$defs"][schema["$ref"].rsplit("/", 1)[1]], value, at)
            faults += more
            known |= names
        kinds = schema.get("type")
        if kinds and not any(is_type(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
            return faults + [f"{at}: {value!r:.80} is no {kinds}"], known
        if "const" in schema and value != schema["const"]:
            faults.append(f"{at}: {value!r:.80} is not {schema['const']!r}")
        if "enum" in schema and value not in schema["enum"]:
            faults.append(f"{at}: {value!r:.80} is none of {schema['enum']}")
        if "minimum" in schema and is_type(value, "number") and value < schema["minimum"]:
            faults.append(f"{at}: {value} is too small")
        if "minLength" in schema and isinstance(value, str) and len(value) < schema["minLength"]:
            faults.append(f"{at}: too short")
        if isinstance(value, list) and "items" in schema:
            for number, item in enumerate(value):
                faults += self.faults(schema["items"], item, f"{at}/{number}")
        if isinstance(value, dict):
            faults += [f"{at}: {name} is missing" for name in schema.get("required", []) if name not in value]
            for name, part in schema.get("properties", {}).items():
                if name in value:
                    known.add(name)
                    faults += self.faults(part, value[name], f"{at}/{name}")
            if schema.get("additionalProperties") or not schema:
                known |= set(value)
        for part in schema.get("allOf", []):
            more, names = self.look(part, value, at)
            faults += more
            known |= names
        for word in "anyOf", "oneOf":
            if word in schema:
                found = [self.look(part, value, at) for part in schema[word]]
                fine = [names for more, names in found if not more]
                if not fine:
                    faults += min((more for more, _ in found), key=len)
                known |= set().union(*(fine or [names for _, names in found]))
        return faults, known

    def faults(self, schema, value, at=""):
        """What is wrong with VALUE, with the members that SCHEMA does not know."""
        faults, known = self.look(schema, value, at)
        if isinstance(value, dict) and not faults and ("properties" in str(schema) or "$ref" in str(schema)):
            faults += [f"{at}: there is no member {name}" for name in value if name not in known]
        return faults

    def params(self, method, params):
        if not self.is_there:
            return []
        schema = self.of_method.get((method, "Params"))
        return self.faults(schema, params, method) if schema else [f"there is no method {method}"]

    def result(self, method, result):
        if not self.is_there:
            return []
        schema = self.of_method.get((method, "Response"))
        return self.faults(schema, result, f"answer to {method}") if schema else [f"no method {method}"]

    def error(self, error):
        return self.faults(self.root["$defs"]["Error"], error, "error") if self.is_there else []
