/* Moving through the rows of a list by keyboard, and selecting them. */

import { useCallback, useEffect, useState } from "../lib.js";
import { useKeys } from "../keys.js";

function rows() {
  return [...document.querySelectorAll("main tr[data-id]")];
}

/** @returns {HTMLElement | null} */
function current() {
  return document.activeElement?.closest("tr[data-id]") ?? null;
}

function move(step) {
  const all = rows();
  if (all.length === 0) {
    return false;
  }
  const at = all.indexOf(current());
  const to = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + step));
  const link = /** @type {HTMLElement | null} */ (all[to].querySelector(".row-link"));
  link?.focus();
  link?.closest("tr").scrollIntoView({ block: "nearest" });
  return true;
}

/** Adds j and k to a list whose rows have data-id and a .row-link. */
export function useRowKeys(actions = {}) {
  useKeys({ j: () => move(1), k: () => move(-1), ...actions });
}

/**
 * The ids of selected rows. A change of the key, which names the list, clears the selection.
 */
export function useSelection(key) {
  const [selected, setSelected] = useState(new Set());
  useEffect(() => setSelected(new Set()), [key]);
  const toggle = useCallback((id) => {
    setSelected((before) => {
      const after = new Set(before);
      if (!after.delete(id)) {
        after.add(id);
      }
      return after;
    });
  }, []);
  useRowKeys({
    x: () => {
      const row = current();
      if (row === null) {
        return false;
      }
      toggle(Number(row.dataset.id));
      return true;
    },
    Escape: () => {
      if (selected.size === 0) {
        return false;
      }
      setSelected(new Set());
      return true;
    },
  });
  return { selected, setSelected, toggle };
}
