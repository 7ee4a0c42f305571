/*
 * JSON that keeps what it was given: numbers keep their digits, repeated keys and their order stay. JSON.parse would
 * print 12345678901234567890 as 12345678901234567000. Nothing here recurses, so depth cannot overflow a stack.
 */

const TOKEN = /[ \t\n\r]*(?:([{}[\],:])|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;
const STRING_START = /[ \t\n\r]*"/y;

/* Deeper lines keep this indentation, or the text would grow with the square of the depth. */
const MOST_INDENTS = 40;

/** What is wrong with a JSON text, and where. */
export class JsonError extends Error {
  constructor(message, offset, text) {
    const before = text.slice(0, offset).split("\n");
    super(`${message} at line ${before.length}, column ${before[before.length - 1].length + 1}`);
    this.offset = offset;
  }
}

/*
 * Strings are scanned by hand: a regular expression with an alternative for each character runs out of stack on
 * strings of some megabytes.
 */
function endOfString(text, start) {
  let at = start + 1;
  for (;;) {
    const code = text.charCodeAt(at);
    if (Number.isNaN(code)) {
      throw new JsonError("A string is not closed", start, text);
    }
    if (code === 0x22) {
      return at + 1;
    }
    if (code < 0x20) {
      throw new JsonError("A string contains a control character that is not escaped", at, text);
    }
    at += code === 0x5c ? 2 : 1;
  }
}

function* tokens(text) {
  let at = 0;
  for (;;) {
    STRING_START.lastIndex = at;
    if (STRING_START.test(text)) {
      const start = STRING_START.lastIndex - 1;
      at = endOfString(text, start);
      const raw = text.slice(start, at);
      decodeString(raw, start, text);
      yield { type: "string", raw, offset: start };
      continue;
    }
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (match === null) {
      const rest = text.slice(at);
      const gap = rest.length - rest.replace(/^[ \t\n\r]+/, "").length;
      if (at + gap < text.length) {
        throw new JsonError("Unexpected " + describe(text, at + gap), at + gap, text);
      }
      yield { type: "end", raw: "", offset: text.length };
      return;
    }
    at = TOKEN.lastIndex;
    const raw = match[1] ?? match[2] ?? match[3];
    const type = match[1] ? raw : match[2] !== undefined ? "number" : "literal";
    yield { type, raw, offset: at - raw.length };
  }
}

function describe(text, at) {
  const character = String.fromCodePoint(text.codePointAt(at));
  return character === "'" ? "' (strings need double quotes)" : `"${character}"`;
}

function decodeString(raw, offset, text) {
  try {
    return JSON.parse(raw);
  } catch {
    throw new JsonError("A string contains an escape that JSON does not know", offset, text);
  }
}

/**
 * Parses a text into nodes: {type: "object", entries: [{key, value}]}, {type: "array", items}, {type: "string", raw,
 * text}, {type: "number"|"literal", raw}. Throws JsonError.
 */
export function parse(text) {
  const root = { type: "array", items: [] };
  const stack = [{ node: root, expects: "value" }];
  for (const token of tokens(text)) {
    const top = stack[stack.length - 1];
    if (token.type === "end") {
      if (stack.length > 1) {
        throw new JsonError(`The text ends inside an ${top.node.type}`, token.offset, text);
      }
      if (root.items.length === 0) {
        throw new JsonError("The text is empty; expected a value such as {}", token.offset, text);
      }
      return root.items[0];
    }
    if (top.node === root && root.items.length > 0) {
      throw new JsonError(`Unexpected "${token.raw[0]}" after the end of the value`, token.offset, text);
    }
    step(stack, top, token, text);
  }
  throw new JsonError("The text ends too early", text.length, text);
}

function step(stack, top, token, text) {
  const fail = (expected) => {
    throw new JsonError(`Unexpected ${describe(text, token.offset)}; expected ${expected}`, token.offset, text);
  };
  switch (top.expects) {
    case "value":
    case "value or ]":
      if (token.type === "]" && top.expects === "value or ]") {
        stack.pop();
      } else {
        addValue(stack, top, token, fail);
      }
      return;
    case "key":
    case "key or }":
      if (token.type === "}" && top.expects === "key or }") {
        stack.pop();
      } else if (token.type === "string") {
        top.key = JSON.parse(token.raw);
        top.expects = "colon";
      } else {
        fail(top.expects === "key" ? "a name in double quotes" : "a name in double quotes or }");
      }
      return;
    case "colon":
      if (token.type !== ":") {
        fail("a colon");
      }
      top.expects = "value";
      return;
    default:
      afterValue(stack, top, token, fail);
  }
}

function afterValue(stack, top, token, fail) {
  const close = top.node.type === "object" ? "}" : "]";
  if (token.type === close) {
    stack.pop();
  } else if (token.type === ",") {
    top.expects = top.node.type === "object" ? "key" : "value";
  } else {
    fail(`a comma or ${close}`);
  }
}

function addValue(stack, top, token, fail) {
  let node;
  let frame = null;
  if (token.type === "{") {
    node = { type: "object", entries: [] };
    frame = { node, expects: "key or }" };
  } else if (token.type === "[") {
    node = { type: "array", items: [] };
    frame = { node, expects: "value or ]" };
  } else if (token.type === "string") {
    node = { type: "string", raw: token.raw, text: JSON.parse(token.raw) };
  } else if (token.type === "number" || token.type === "literal") {
    node = { type: token.type, raw: token.raw };
  } else {
    fail("a value");
  }
  if (top.node.type === "object") {
    top.node.entries.push({ key: top.key, value: node });
  } else {
    top.node.items.push(node);
  }
  top.expects = "comma";
  if (frame) {
    stack.push(frame);
  }
}

/** The text with line breaks and two spaces of indentation; every name and value as it was written. Throws JsonError. */
export function format(text) {
  parse(text);
  const out = [];
  let depth = 0;
  let previous = null;
  const newLine = () => out.push("\n", "  ".repeat(Math.min(depth, MOST_INDENTS)));
  for (const { type, raw } of tokens(text)) {
    if (type === "}" || type === "]") {
      depth--;
      if (previous !== "{" && previous !== "[") {
        newLine();
      }
    } else if (previous === "{" || previous === "[" || previous === ",") {
      newLine();
    }
    out.push(raw);
    if (type === "{" || type === "[") {
      depth++;
    } else if (type === ":") {
      out.push(" ");
    }
    previous = type;
  }
  return out.join("");
}
