/* Buttons. One that may not be used stays reachable and says why. */

import { html, classes, useEffect, useRef, useState } from "../lib.js";
import { whyNot } from "../session.js";
import { Icon } from "./icons.js";
import { toast } from "./toast.js";

/** kind: "plain", "primary", "danger" or "quiet". whyOff: the reason why it cannot be used, or null. */
export function Button({ kind = "plain", icon, whyOff = null, onClick, children, class: name, ...rest }) {
  const click = (event) => {
    if (whyOff === null) {
      onClick?.(event);
    } else {
      event.preventDefault();
    }
  };
  return html`<button
    type="button"
    class=${classes("button", kind, !children && "icon-only", name)}
    aria-disabled=${whyOff === null ? undefined : "true"}
    data-tip=${whyOff ?? undefined}
    onClick=${click}
    ...${rest}
  >${icon && html`<${Icon} name=${icon} />`}${children && html`<span>${children}</span>`}</button>`;
}

/** A button for an action of the API, off with the reason where the user may not do it. */
export function ActionButton({ action, whyOff = null, ...rest }) {
  return html`<${Button} whyOff=${whyNot(action) ?? whyOff} ...${rest} />`;
}

/** Copies a text. */
export function CopyButton({ text, label = "Copy", quiet = true }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      setCopied(true);
      toast({ text: "Copied" });
      setTimeout(() => setCopied(false), 1500);
    } catch {
      toast({ text: "The browser does not allow copying here; select the text instead.", level: "error" });
    }
  };
  return html`<${Button} kind=${quiet ? "quiet" : "plain"} icon=${copied ? "check" : "copy"} onClick=${copy}
    aria-label=${label} data-tip=${label} />`;
}

/** A button that opens a list of actions: [{label, icon, danger, whyOff, onSelect}]. */
export function Menu({ label, icon = "more", items, children }) {
  const [open, setOpen] = useState(false);
  const box = useRef(null);
  useDismiss(box, open, () => setOpen(false));
  useEffect(() => {
    if (open) {
      const menu = box.current.querySelector("[role=menu]");
      // It ends where the button ends, unless the window is too narrow.
      menu.style.right = Math.min(0, menu.getBoundingClientRect().left - 8) + "px";
      menu.querySelector("[role=menuitem]")?.focus();
    }
  }, [open]);

  const move = (event) => {
    const all = [...box.current.querySelectorAll("[role=menuitem]")];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      all[(to + all.length) % all.length].focus();
    }
  };
  const select = (item) => {
    if (item.whyOff) {
      return;
    }
    setOpen(false);
    box.current.querySelector("button").focus();
    item.onSelect();
  };
  return html`<div class="menu" ref=${box}>
    <button type="button" class=${classes("button", children ? "plain" : "quiet icon-only")} aria-haspopup="menu"
      aria-expanded=${open ? "true" : "false"} aria-label=${children ? undefined : label} onClick=${() => setOpen(!open)}>
      ${children && html`<span>${children}</span>`}<${Icon} name=${icon} />
    </button>
    ${
      open &&
      html`<div class="popover" role="menu" aria-label=${label} onKeyDown=${move}>
      ${items.map(
        (item) => html`<button type="button" role="menuitem" tabindex="-1" key=${item.label}
          class=${classes("menu-item", item.danger && "danger")} aria-disabled=${item.whyOff ? "true" : undefined}
          data-tip=${item.whyOff ?? undefined} onClick=${() => select(item)}>
          <${Icon} name=${item.icon} /><span>${item.label}</span>
        </button>`,
      )}
    </div>`
    }
  </div>`;
}

/** Closes something that is open on Escape, a click elsewhere, or when the focus leaves. */
export function useDismiss(box, open, close) {
  useEffect(() => {
    if (!open) {
      return undefined;
    }
    const outside = (event) => {
      if (!box.current?.contains(event.target)) {
        close();
      }
    };
    const escape = (event) => {
      if (event.key === "Escape") {
        event.preventDefault();
        event.stopPropagation();
        close();
        box.current?.querySelector("button")?.focus();
      }
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    document.addEventListener("keydown", escape, true);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
      document.removeEventListener("keydown", escape, true);
    };
  });
}
