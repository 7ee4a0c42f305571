/* Goes through a list that is read page by page. */

import { html } from "../lib.js";
import { setQuery } from "../router.js";
import { Button } from "./button.js";

/* The page before each page that was reached by "Next"; lists have only the address of the next one. */
const before = new Map();

export function Pager({ after, next, children }) {
  const go = (to) => {
    setQuery({ after: to });
    scrollTo(0, 0);
    document.getElementById("page-title")?.focus({ preventScroll: true });
  };
  const forward = () => {
    before.set(String(next), after);
    go(next);
  };
  return html`<nav class="pager" aria-label="Pages of the list">
    <span class="pager-text">${children}</span>
    ${
      after &&
      html`<${Button} onClick=${() => go(before.get(after) ?? null)}>
      ${before.get(after) ? "Previous" : "First page"}</${Button}>`
    }
    ${next !== null && next !== undefined && html`<${Button} onClick=${forward}>Next</${Button}>`}
  </nav>`;
}
