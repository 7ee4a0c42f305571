/* Who looks, at which worker, and what they may do. */

import { getMe, instanceApi, renewCsrfBy, useCsrf } from "./api.js";
import { createStore, useStore } from "./store.js";
import { DEFAULT_INSTANCE, useRoute } from "./router.js";

export const session = createStore({ me: null, error: null });

/* How far the application's clock is ahead of this computer's, so that "3 s ago" is true on both. */
let clockAhead = 0;

export function serverNow() {
  return Date.now() + clockAhead;
}

/** Takes the application's time from one of its answers. */
export function setClock(iso) {
  const time = Date.parse(iso);
  if (!Number.isNaN(time) && Math.abs(Date.now() + clockAhead - time) > 1500) {
    clockAhead = time - Date.now();
  }
}

export async function loadSession() {
  try {
    const me = await getMe();
    useCsrf(me.csrf.headers);
    setClock(me.time);
    session.set({ me, error: null });
  } catch (error) {
    session.set({ me: session.get().me, error });
  }
}

renewCsrfBy(loadSession);

/** The worker instance in the URL; the first one if there is none in it. */
export function useInstance() {
  const route = useRoute();
  const { me } = useStore(session);
  return route.query.get("instance") ?? me?.instances[0] ?? DEFAULT_INSTANCE;
}

const apis = new Map();

/** The API of the worker instance in the URL; the same object for the same instance. */
export function useApi() {
  const instance = useInstance();
  if (!apis.has(instance)) {
    apis.set(instance, instanceApi(instance));
  }
  return apis.get(instance);
}

/** Why this user may not do an action; null if they may. */
export function whyNot(action) {
  const { me } = session.get();
  if (!me) {
    return "Loading";
  }
  if (me.actions.includes(action)) {
    return null;
  }
  if (me.readOnly) {
    return (
      me.readOnlyReason ?? "The dashboard is read-only. Set pgworker.dashboard.allow-actions=true to allow changes."
    );
  }
  return `${me.user ?? "You"} may not do this.`;
}
