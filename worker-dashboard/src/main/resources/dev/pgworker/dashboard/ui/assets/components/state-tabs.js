/* States or outcomes to choose one of, with numbers where they are known. */

import { html, useEffect, useRef } from "../lib.js";
import { Link } from "../router.js";
import { compact, number } from "../text.js";
import { Icon } from "./icons.js";

/**
 * @param path the page
 * @param query all its filters
 * @param name the filter that the tabs set
 * @param counts numbers by value; what is missing is not shown
 */
export function StateTabs({ label, path, query, name, values, counts = {} }) {
  const chosen = query[name] ?? null;
  const tabs = useRef(null);
  const counted = Object.keys(counts).length > 0;
  // On narrow screens the chosen tab may be out of sight; numbers that arrive make the tabs wider.
  useEffect(() => {
    const tab = tabs.current.querySelector("[aria-current]");
    tabs.current.scrollLeft = tab.offsetLeft - (tabs.current.clientWidth - tab.offsetWidth) / 2;
  }, [chosen, counted]);
  return html`<nav class="tabs" aria-label=${label} ref=${tabs}>
    ${[null, ...values].map(
      (value) => html`<${Link} key=${value} to=${path} query=${{ ...query, [name]: value }}
      class=${value ? "is-" + value : ""}
      aria-current=${value === chosen ? "true" : undefined}>
      ${value && html`<${Icon} name=${value} />`}<span class="tab-word">${value ?? "All"}</span>
      ${
        counts[value] !== undefined &&
        html`<span class="tab-count num"
        data-tip=${counts[value] > 9999 ? number(counts[value]) : undefined}>
          ${counts[value] > 9999 ? compact(counts[value]) : number(counts[value])}</span>`
      }
    </${Link}>`,
    )}
  </nav>`;
}
