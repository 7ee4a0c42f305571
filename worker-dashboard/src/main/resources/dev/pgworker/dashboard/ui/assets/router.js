/* Paths below the dashboard's base, without reloading. The URL holds the page, its filters and the worker instance. */

import { createStore, useStore } from "./store.js";
import { html } from "./lib.js";

export const DEFAULT_INSTANCE = "default";
const INSTANCE = "instance";
const BASE = new URL(document.baseURI).pathname;

function read() {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : "";
  return {
    path: path.replace(/\/+$/, ""),
    query: new URLSearchParams(location.search),
    entry: history.state?.entry ?? 0,
  };
}

const route = createStore(read());

addEventListener("popstate", () => route.set(read()));

export function useRoute() {
  return useStore(route);
}

export function currentInstance() {
  return route.get().query.get(INSTANCE);
}

/**
 * The address of a page. Every part of the path is encoded, so that no name can leave its place in it.
 *
 * @param parts the path as an array of parts
 * @param query filters by name; those without a value are left out
 */
export function href(parts, query = {}, instance = currentInstance()) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") {
      search.set(name, value);
    }
  }
  if (instance && instance !== DEFAULT_INSTANCE) {
    search.set(INSTANCE, instance);
  }
  const text = search.toString();
  return BASE + parts.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

/** Goes to an address of this dashboard. */
export function navigate(address, { replace = false } = {}) {
  const entry = (history.state?.entry ?? 0) + (replace ? 0 : 1);
  history[replace ? "replaceState" : "pushState"]({ entry }, "", address);
  route.set(read());
}

/** Changes filters of this page; a value without content removes its filter. */
export function setQuery(changes, options) {
  const query = Object.fromEntries(route.get().query);
  delete query[INSTANCE];
  navigate(href(route.get().path.split("/").map(decodeURIComponent), { ...query, ...changes }), options);
}

/** A link that the browser can also open in another tab. */
export function Link({ to, query, children, onClick = null, ...rest }) {
  const address = typeof to === "string" ? to : href(to, query);
  const click = (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    ) {
      return;
    }
    event.preventDefault();
    onClick?.();
    navigate(address);
  };
  return html`<a href=${address} onClick=${click} ...${rest}>${children}</a>`;
}

/**
 * An address that the server suggests, such as "jobs?state=failed", as one of this dashboard; null if it would lead
 * elsewhere.
 */
export function suggested(link) {
  try {
    const url = new URL(link, document.baseURI);
    if (url.origin !== location.origin || !url.pathname.startsWith(BASE)) {
      return null;
    }
    const query = Object.fromEntries(url.searchParams);
    return href(url.pathname.slice(BASE.length).split("/").map(decodeURIComponent), query);
  } catch {
    return null;
  }
}
