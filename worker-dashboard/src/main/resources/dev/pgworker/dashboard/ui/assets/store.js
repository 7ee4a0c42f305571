/* A value that parts of the page watch. */

import { useEffect, useState } from "./lib.js";

export function createStore(initial) {
  let value = initial;
  const watchers = new Set();
  return {
    get: () => value,
    set(next) {
      value = typeof next === "function" ? next(value) : next;
      for (const watcher of [...watchers]) {
        watcher(value);
      }
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

/** Reads a store, and renders again when it changes. */
export function useStore(store) {
  const [, render] = useState(0);
  useEffect(() => {
    let seen = store.get();
    const changed = () => {
      if (store.get() !== seen) {
        seen = store.get();
        render((count) => count + 1);
      }
    };
    changed();
    return store.watch(changed);
  }, [store]);
  return store.get();
}
