/* Times and durations in words. Pure functions: the caller says what time it is. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A duration with the precision that matters: 8 ms, 1.24 s, 3 m 05 s, 2 h 10 m, 4 d 3 h. */
export function duration(ms) {
  if (ms === null || ms === undefined) {
    return "–";
  }
  const value = Math.abs(ms);
  if (value < SECOND) {
    return (value < 10 && !Number.isInteger(value) ? value.toFixed(1) : Math.round(value)) + " ms";
  }
  if (value < 10 * SECOND) {
    return (Math.floor(value / 10) / 100).toFixed(2) + " s";
  }
  if (value < MINUTE) {
    return (Math.floor(value / 100) / 10).toFixed(1) + " s";
  }
  return coarse(value);
}

/** A duration that is known to within a fifth, as those of tasks are: "~640 ms", "~1.2 s", "~3 m". */
export function approximate(ms) {
  if (ms === null || ms === undefined) {
    return "–";
  }
  const round = Number(ms.toPrecision(2));
  return (
    "~" +
    (round < SECOND ? `${round} ms` : round < MINUTE ? `${Number((round / SECOND).toPrecision(2))} s` : oneUnit(round))
  );
}

/** A duration in whole units, for what ticks: 5 s, 3 m 05 s, 2 h 10 m, 4 d 3 h. */
export function coarse(ms) {
  const value = Math.abs(ms);
  if (value < MINUTE) {
    return Math.floor(value / SECOND) + " s";
  }
  if (value < HOUR) {
    return two(value, MINUTE, "m", SECOND, "s");
  }
  if (value < DAY) {
    return two(value, HOUR, "h", MINUTE, "m");
  }
  if (value < 100 * DAY) {
    const days = Math.floor(value / DAY);
    const hours = Math.floor((value % DAY) / HOUR);
    return hours === 0 ? days + " d" : `${days} d ${hours} h`;
  }
  return Math.floor(value / DAY) + " d";
}

function two(value, large, largeUnit, small, smallUnit) {
  const rest = Math.floor((value % large) / small);
  return `${Math.floor(value / large)} ${largeUnit} ${String(rest).padStart(2, "0")} ${smallUnit}`;
}

/** "now", "12 s ago", "in 3 m"; one unit, so that columns stay calm. */
export function relative(time, now) {
  const difference = time - now;
  const value = Math.abs(difference);
  if (value < SECOND) {
    return "now";
  }
  const text = oneUnit(value);
  return difference > 0 ? "in " + text : text + " ago";
}

/** A duration in one unit: 12 s, 3 m, 5 h, 4 d. */
export function oneUnit(value) {
  if (value < MINUTE) {
    return Math.floor(value / SECOND) + " s";
  }
  if (value < HOUR) {
    return Math.floor(value / MINUTE) + " m";
  }
  if (value < 2 * DAY) {
    return Math.floor(value / HOUR) + " h";
  }
  if (value < 365 * DAY) {
    return Math.floor(value / DAY) + " d";
  }
  return Math.floor(value / (365 * DAY)) + " y";
}

/* Beyond these years PostgreSQL's infinity and nonsense begin; a date would only mislead. */
const EARLIEST = Date.UTC(-4700, 0);
const LATEST = Date.UTC(9999, 11, 31);

/** Milliseconds of an ISO-8601 text; null if it is none that can be shown. */
export function parse(iso) {
  const time = Date.parse(iso);
  return Number.isNaN(time) || time < EARLIEST || time > LATEST ? null : time;
}

/* The last year of PostgreSQL's calendar. */
const LAST_YEAR = 294276;

/** Words for a time that parse does not take: "never" for infinity, the year of what is far away. */
export function distant(iso) {
  const year = /^([+-]?)(\d{4,10})-\d\d-/.exec(iso);
  if (iso === "infinity" || (year && year[1] !== "-" && Number(year[2]) > LAST_YEAR)) {
    return "never";
  }
  if (iso === "-infinity" || (year && year[1] === "-" && Number(year[2]) > LAST_YEAR)) {
    return "always";
  }
  return year ? `year ${year[1] === "-" ? "−" : ""}${Number(year[2])}` : iso.slice(0, 24);
}

/** @type {Intl.DateTimeFormatOptions} */
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
/** @type {Intl.DateTimeFormatOptions} */
const DATE = { year: "numeric", month: "short", day: "numeric" };

/** "23 Nov 2026, 06:12:33" in the browser's zone. */
export function local(time) {
  return new Intl.DateTimeFormat("en-GB", { ...DATE, ...CLOCK }).format(time);
}

/** A time as short as it can be and still be told apart: the clock today, the date besides on other days. */
export function short(time, now) {
  const date = new Date(time);
  if (date.toDateString() === new Date(now).toDateString()) {
    return clock(time);
  }
  /** @type {Intl.DateTimeFormatOptions} */
  const options = date.getFullYear() === new Date(now).getFullYear() ? {} : { year: "numeric" };
  const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", ...options }).format(time);
  return options.year ? day : `${day} ${clock(time, false)}`;
}

/** The clock alone, without seconds where a window is long. */
export function clock(time, seconds = true) {
  const { second, ...short } = CLOCK;
  return new Intl.DateTimeFormat("en-GB", seconds ? CLOCK : short).format(time);
}

/** "2026-11-23 05:12:33.123 UTC". */
export function utc(time) {
  return new Date(time).toISOString().replace("T", " ").replace("Z", " UTC");
}

export function zone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Both absolute forms, for a tooltip. */
export function absolute(time) {
  return `${local(time)} ${zone()}\n${utc(time)}`;
}

/** The value of a datetime-local input, in the browser's zone. */
export function toInput(time) {
  const date = new Date(time);
  return new Date(time - date.getTimezoneOffset() * MINUTE).toISOString().slice(0, 16);
}

/** The same to the second, for an input with step=1. */
export function toInputSeconds(time) {
  const date = new Date(time);
  return new Date(time - date.getTimezoneOffset() * MINUTE).toISOString().slice(0, 19);
}

/** The ISO-8601 text of a datetime-local input; null if it is empty or no time. */
export function fromInput(value) {
  const time = Date.parse(value);
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}
