/* Small pieces of text: foreign names, states, times, numbers. */

import { html, classes, useState } from "../lib.js";
import { cutAt, number, plain, visible } from "../text.js";
import { absolute, coarse, distant, local, oneUnit, parse, relative, short, utc, zone } from "../time.js";
import { absoluteTimes, useNow } from "../clock.js";
import { useStore } from "../store.js";
import { Icon } from "./icons.js";

/**
 * Text from outside: isolated from the direction of what surrounds it, control characters spelled out, cut with the
 * rest on demand.
 */
export function Foreign({ text, most = 300, expandable = false, class: name }) {
  const [all, setAll] = useState(false);
  const shown = all ? text : cutAt(text, most);
  const hidden = text.length - shown.length;
  return html`<bdi class=${classes("foreign", name)}>
    ${visible(shown).map((part) => (typeof part === "string" ? part : html`<span class="control">${part.code}</span>`))}
    ${
      hidden > 0 &&
      (expandable
        ? html`… <button type="button" class="link" onClick=${() => setAll(true)}>${number(hidden)} more characters</button>`
        : "…")
    }
  </bdi>`;
}

/** Foreign text on one line, cut by the width of its place; the tooltip has more of it. */
export function OneLine({ text, class: name }) {
  return html`<span class=${classes("one-line", name)} data-tip-cut=${plain(text, 1000)}><${Foreign} text=${text} /></span>`;
}

/** State or outcome: icon, colour and word. */
export function State({ state, word = state, compact = false }) {
  return html`<span class=${classes("state", "is-" + state, compact && "compact")}>
    <${Icon} name=${state} /><span class="word">${word}</span>
  </span>`;
}

/* A time that no calendar has; what was sent is in the tooltip. */
function Distant({ iso }) {
  return html`<span class="distant" data-tip=${plain(iso, 100)}><${Foreign} text=${distant(iso)} /></span>`;
}

/* The time of a job that waits for others, see JobFlows. */
function isAfterOthers(iso) {
  return iso.startsWith("9999-01-01T00:00:00");
}

/** A time as distance from now, or by the clock where that was chosen; the tooltip has local time and UTC. */
export function Time({ iso, focusable = false }) {
  const now = useNow();
  const byClock = useStore(absoluteTimes);
  if (!iso) {
    return html`<span class="muted">–</span>`;
  }
  if (isAfterOthers(iso)) {
    return html`<span class="muted">after others</span>`;
  }
  const time = parse(iso);
  if (time === null) {
    return html`<${Distant} iso=${iso} />`;
  }
  return html`<time datetime=${iso} data-tip=${absolute(time)} tabindex=${focusable ? 0 : undefined}>
    ${byClock ? short(time, now) : relative(time, now)}</time>`;
}

/** A time in full: distance, local time and UTC, for places that have room. */
export function FullTime({ iso }) {
  const now = useNow();
  if (!iso) {
    return html`<span class="muted">–</span>`;
  }
  if (isAfterOthers(iso)) {
    return html`<span class="muted">after other jobs</span>`;
  }
  const time = parse(iso);
  if (time === null) {
    return html`<${Distant} iso=${iso} />`;
  }
  return html`<time datetime=${iso} class="full-time" data-tip=${`${zone()}\n${utc(time)}`} tabindex="0">
    <span>${local(time)}</span> <span class="muted">${relative(time, now)}</span>
  </time>`;
}

/** How long ago something began, ticking. */
export function Since({ iso }) {
  const now = useNow();
  const time = parse(iso);
  return time === null
    ? html`<span class="muted">–</span>`
    : html`<time datetime=${iso} data-tip=${absolute(time)}>${coarse(Math.max(0, now - time))}</time>`;
}

/** How old something is, in one unit; by the clock where that was chosen. */
export function Age({ iso }) {
  const now = useNow();
  const byClock = useStore(absoluteTimes);
  const time = parse(iso);
  return time === null
    ? html`<span class="muted">–</span>`
    : html`<time datetime=${iso} data-tip=${absolute(time)}>${byClock ? short(time, now) : oneUnit(Math.max(0, now - time))}</time>`;
}

/** The beginning of a payload on one line of its own; nothing where it is hidden or empty. */
export function PayloadPreview({ text }) {
  return !text || text === "{}" || text === "null"
    ? null
    : html`<${OneLine} text=${text.replace(/\s+/g, " ")} class="payload-preview mono muted" />`;
}

/** Progress that a handler told: bar, numbers and its own words. */
export function Progress({ progress, label = "Progress" }) {
  if (!progress) {
    return html`<span class="progress-line"><span class="bar waiting" aria-hidden="true"></span></span>`;
  }
  const known = progress.total > 0;
  return html`<span class="progress-line">
    ${
      known &&
      html`<progress class="bar" aria-label=${label}
      value=${Math.max(0, Math.min(progress.done, progress.total))} max=${progress.total}></progress>`
    }
    <span class="progress-text">
      ${
        known
          ? html`<span class="num">${number(progress.done)} / ${number(progress.total)}</span>`
          : html`<span class="num">${number(progress.done)}</span>`
      }
      ${progress.text && html` <${OneLine} text=${progress.text} class="muted" />`}
    </span>
  </span>`;
}

/** Flags of a job. */
export function Flags({ flags }) {
  return flags.map((flag) => html`<span class="flag" key=${flag}><${Foreign} text=${flag} most=${60} /></span>`);
}
