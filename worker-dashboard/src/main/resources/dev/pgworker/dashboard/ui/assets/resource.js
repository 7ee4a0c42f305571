/* Data of a page: loaded when its address changes, kept while it is loaded again, so that nothing jumps. */

import { useCallback, useEffect, useRef, useState } from "./lib.js";
import { connection } from "./live.js";

/**
 * Loads data whenever the key changes. What was loaded before stays until the answer is there; an answer that comes
 * too late is dropped.
 *
 * @param key text that names the data
 * @param load function of an AbortSignal
 */
export function useResource(key, load) {
  const [state, setState] = useState({ key: null, data: null, error: null, loading: true, loadedAt: null });
  const latest = useRef(load);
  latest.current = load;
  const running = useRef(null);

  const reload = useCallback(async () => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setState((before) => ({ ...before, loading: true }));
    try {
      const data = await latest.current(controller.signal);
      if (running.current === controller) {
        setState({ key, data, error: null, loading: false, loadedAt: Date.now() });
      }
    } catch (error) {
      if (running.current === controller && error.name !== "AbortError") {
        setState((before) => ({ ...before, error, loading: false }));
      }
    }
  }, [key]);

  useEffect(() => {
    reload();
    return () => running.current?.abort();
  }, [reload]);

  // What failed while the application or its database was away is asked for again when they are back.
  useEffect(() => {
    if (state.error === null) {
      return undefined;
    }
    let away = connection.get().state !== "live";
    return connection.watch((now) => {
      if (now.state === "live" && away) {
        reload();
      }
      away = now.state !== "live";
    });
  }, [state.error, reload]);

  const update = useCallback((change) => {
    setState((before) => (before.data === null ? before : { ...before, data: change(before.data) }));
  }, []);

  return { ...state, fresh: state.key === key, reload, update };
}
