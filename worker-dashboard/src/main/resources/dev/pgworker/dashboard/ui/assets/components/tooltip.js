/*
 * One tooltip for the page, for pointer and keyboard. Elements say their text in data-tip; those with data-tip-cut show
 * it only where their own text does not fit. Escape hides it.
 */

const tip = document.createElement("div");
tip.className = "tooltip";
tip.id = "tooltip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;

let owner = null;

function textOf(element) {
  if (element.dataset.tip) {
    return element.dataset.tip;
  }
  const cut = element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight + 4;
  return cut ? element.dataset.tipCut : null;
}

function show(element) {
  const text = textOf(element);
  if (!text) {
    hide();
    return;
  }
  owner = element;
  tip.textContent = text;
  // Inside an open dialog, because whatever is outside lies behind it; otherwise inside a landmark, for those who go by these.
  (element.closest("dialog[open]") ?? document.getElementById("main") ?? document.body).append(tip);
  tip.hidden = false;
  const at = element.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left + at.width / 2 - size.width / 2, innerWidth - size.width - 8));
  const above = at.top - size.height - 6;
  tip.style.left = left + "px";
  tip.style.top = (above < 8 ? at.bottom + 6 : above) + "px";
  element.setAttribute("aria-describedby", tip.id);
}

function hide() {
  tip.hidden = true;
  owner?.removeAttribute("aria-describedby");
  owner = null;
}

/* The keyboard reaches links and buttons, whose text may be what is cut. */
function tipped({ type, target }) {
  const element = target.closest("[data-tip],[data-tip-cut]");
  return element ?? (type === "focusin" && target.matches("a, button") ? target.querySelector("[data-tip-cut]") : null);
}

function enter(event) {
  const element = event.target instanceof Element ? tipped(event) : null;
  if (element === null) {
    if (event.type === "pointerover") {
      hide();
    }
  } else if (element !== owner) {
    hide();
    show(element);
  }
}

export function startTooltips() {
  document.addEventListener("pointerover", enter);
  document.addEventListener("focusin", enter);
  document.addEventListener("focusout", hide);
  document.addEventListener("pointerdown", hide);
  document.addEventListener("scroll", hide, { capture: true, passive: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}
