/* The one place that names the vendored view library. */

import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { useCallback, useEffect, useId, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
export { h, render };

/** Builds elements from a template; values become text nodes or attributes, never markup. */
export const html = htm.bind(h);

/** Joins the class names that are given. */
export function classes(...names) {
  return names.filter(Boolean).join(" ");
}
