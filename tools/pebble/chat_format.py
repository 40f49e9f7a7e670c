"""Gemma 4's chat template, small form, as segments (text, written by the model).

The engine renders the same conversations in src/text/chat.c; check_tokens.py compares the two.
A conversation: {"system": str or None, "tools": [tool], "think": bool, "turns": [turn]}.
A user turn: ("user", text). It may contain the media markers <|image|> and <|audio|>, which are
replaced by soft tokens later.
A model turn: ("model", [step]) with steps ("thought", text), ("call", name, args),
("result", name, text) and ("text", text).
"""
Q = '<|"|>'


def value(v):
    if isinstance(v, str):
        return Q + v + Q
    if v is True or v is False or v is None:
        return {True: "true", False: "false", None: "null"}[v]
    if isinstance(v, dict):
        return "{" + ",".join(f"{k}:{value(v[k])}" for k in sorted(v)) + "}"
    if isinstance(v, (list, tuple)):
        return "[" + ",".join(value(x) for x in v) + "]"
    return str(v)


def declaration(tool):
    """tool: {"name", "description", "properties": {name: {"type", "description"?, "enum"?}}, "required": [..]}"""
    props = []
    for name in sorted(tool["properties"]):
        p, fields = tool["properties"][name], []
        if p.get("description"):
            fields.append("description:" + value(p["description"]))
        if p.get("enum"):
            fields.append("enum:[" + ",".join(value(e) for e in p["enum"]) + "]")
        fields.append("type:" + value(p["type"].upper()))
        props.append(name + ":{" + ",".join(fields) + "}")
    parts = []
    if props:
        parts.append("properties:{" + ",".join(props) + "}")
    if tool.get("required"):
        parts.append("required:[" + ",".join(value(r) for r in tool["required"]) + "]")
    parts.append("type:" + value("OBJECT"))
    return (f"<|tool>declaration:{tool['name']}" + "{description:" + value(tool["description"]) +
            ",parameters:{" + ",".join(parts) + "}}<tool|>")


def as_json_tool(tool):
    """the same tool as chat APIs write it"""
    return {"type": "function", "function": {
        "name": tool["name"], "description": tool["description"],
        "parameters": {"type": "object", "properties": tool["properties"], "required": tool.get("required", [])}}}


def call(name, args):
    return f"<|tool_call>call:{name}" + "{" + ",".join(f"{k}:{value(args[k])}" for k in sorted(args)) + "}<tool_call|>"


def segments(conv, generation_prompt=False):
    """[(text, learn)]; with generation_prompt the last turn is the user's and the model is to answer"""
    out = [("<bos>", False)]
    think, tools, system = conv.get("think", False), conv.get("tools") or [], conv.get("system")
    if think or tools or system is not None:
        out.append(("<|turn>system\n" + ("<|think|>\n" if think else "") + (system or "").strip() +
                    "".join(declaration(t) for t in tools) + "<turn|>\n", False))
    turns = conv["turns"]
    last_user = max((i for i, t in enumerate(turns) if t[0] == "user"), default=-1)
    for i, (role, body) in enumerate(turns):
        if role == "user":
            out.append(("<|turn>user\n" + body.strip() + "<turn|>\n", False))
            continue
        # with thinking on, earlier turns have no thoughts in the history, so nothing is learned from them
        learn = not think or i > last_user
        out.append(("<|turn>model\n", False))
        steps, k = list(body), 0
        while k < len(steps):
            kind = steps[k][0]
            if kind == "thought":
                if i > last_user:
                    after_result = k > 0 and steps[k - 1][0] == "result"
                    if after_result:                  # the engine opens this channel itself
                        out.append(("<|channel>thought\n", False))
                        out.append((steps[k][1] + "\n<channel|>", learn))
                    else:
                        out.append(("<|channel>thought\n" + steps[k][1] + "\n<channel|>", learn))
            elif kind == "call":
                out.append((call(steps[k][1], steps[k][2]), learn))
                if k + 1 == len(steps) or steps[k + 1][0] == "result":
                    out.append(("<|tool_response>", learn))   # the model stops here
            elif kind == "result":
                if steps[k - 1][0] == "result":
                    out.append(("<|tool_response>", False))
                out.append((f"response:{steps[k][1]}" + "{value:" + value(steps[k][2]) + "}<tool_response|>", False))
            else:
                out.append((steps[k][1].strip(), learn))
            k += 1
        if steps[-1][0] == "text":
            out.append(("<turn|>", learn))
            out.append(("\n", False))
    if generation_prompt:
        last = turns[-1]
        if last[0] == "user":
            out.append(("<|turn>model\n", False))
        elif last[1][-1][0] == "result" and think:
            out.append(("<|channel>thought\n", False))
    return out


def text(conv, generation_prompt=False):
    return "".join(t for t, _ in segments(conv, generation_prompt))
