/* Words, numbers and foreign text. No dependencies on the page: everything here is a pure function. */

const WHOLE = new Intl.NumberFormat("en");
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 12,345; a dash for what is not known. */
export function number(value) {
  return value === null || value === undefined ? "–" : WHOLE.format(value);
}

/** 12.3K; for axes and narrow places. */
export function compact(value) {
  return value === null || value === undefined ? "–" : COMPACT.format(value);
}

/** "1 job", "2 jobs". */
export function plural(count, one, many = one + "s") {
  return number(count) + " " + (count === 1 ? one : many);
}

/** 0.4 %; never rounds something to nothing, or less than everything to everything. */
export function percent(part, whole) {
  if (!whole) {
    return "–";
  }
  const value = (part / whole) * 100;
  if (value === 0 || value === 100) {
    return value + " %";
  }
  if (value < 0.1) {
    return "< 0.1 %";
  }
  if (value > 99.9) {
    return "> 99.9 %";
  }
  return (value < 10 ? value.toFixed(1) : Math.round(value)) + " %";
}

export function bytes(count) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return (unit === 0 || value >= 100 ? WHOLE.format(Math.round(value)) : value.toFixed(1)) + " " + units[unit];
}

/* Characters that are invisible or that reorder what stands around them. Line feed and tab are layout, not tricks. */
const CONTROL =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\u{e0000}-\u{e007f}]/gu;

/** Splits a text into plain runs (strings) and control characters ({code: "U+202E"}). */
export function visible(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(CONTROL)) {
    if (match.index > end) {
      parts.push(text.slice(end, match.index));
    }
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.push({ code: "U+" + code });
    end = match.index + match[0].length;
  }
  if (end < text.length) {
    parts.push(text.slice(end));
  }
  return parts;
}

/** The text for a title or a label: control characters are spelled out, and it is cut. */
export function plain(text, most = 300) {
  const cut = cutAt(text, most);
  const shown = visible(cut)
    .map((part) => (typeof part === "string" ? part : `[${part.code}]`))
    .join("");
  return cut.length < text.length ? shown + "…" : shown;
}

/** The first characters of a text, never half of a surrogate pair. */
export function cutAt(text, most) {
  if (text.length <= most) {
    return text;
  }
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}

/** Splits an error into its message and the lines that follow: stack frames, causes and the rest. */
export function splitError(error) {
  const lines = error.split(/\r\n|\n|\r/);
  let first = lines.findIndex((line) => line.trim() !== "");
  if (first < 0) {
    first = 0;
  }
  const colon = /^([\w$]+(?:\.[\w$]+)+)(?::\s?(.*))?$/.exec(cutAt(lines[first] ?? "", 2000));
  return {
    type: colon ? colon[1] : null,
    message:
      colon && colon[2] ? lines[first].slice(lines[first].indexOf(colon[2], colon[1].length)) : (lines[first] ?? ""),
    rest: lines.slice(first + 1),
  };
}

/* "com.example.NoStock: none left", also inside "dev.example.Wrapper: com.example.NoStock: none left". */
const THROWN = /^(?:[a-z_][\w$]*\.)+([A-Z][\w$]*)(?::\s+|$)/;

/**
 * The beginning of an error on one line: what it says, then which class says it. The class is what is cut first where
 * room is short; that of decisions about the job tells nothing.
 */
export function headline(error) {
  let message = error
    .slice(0, 1000)
    .trimStart()
    .split(/[\r\n]/, 1)[0];
  let type = null;
  for (let match = THROWN.exec(message); match !== null; match = THROWN.exec(message)) {
    type = match[1];
    message = message.slice(match[0].length);
  }
  if (message === "") {
    return type ?? "";
  }
  return type === null || type === "JobControlException" ? message : `${message} (${type})`;
}
