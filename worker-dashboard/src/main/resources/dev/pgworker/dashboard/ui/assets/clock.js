/* One timer for all relative times of the page; it rests while the tab is hidden. */

import { createStore, useStore } from "./store.js";
import { serverNow } from "./session.js";

const now = createStore(serverNow());

function tick() {
  if (!document.hidden) {
    now.set(serverNow());
  }
}

setInterval(tick, 1000);
document.addEventListener("visibilitychange", tick);

/** The application's time in milliseconds; renders again every second. */
export function useNow() {
  return useStore(now);
}
