/* Icons on a grid of 16 by 16, drawn with the current colour. They accompany words, so readers skip them. */

import { h } from "../lib.js";

const circle = "M8 1.75a6.25 6.25 0 1 0 0 12.5a6.25 6.25 0 1 0 0-12.5";

const SHAPES = {
  overview: ["M2.5 2.5h4.5v6h-4.5zM9 2.5h4.5v3.5h-4.5zM9 8.5h4.5v5h-4.5zM2.5 11h4.5v2.5h-4.5z"],
  jobs: ["M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5"],
  history: ["M2.6 5.2A6 6 0 1 1 2 8", "M2.4 2.4v3h3", "M8 5v3.2l2.2 1.4"],
  queues: ["M2.5 3h11v2.6h-11zM2.5 6.9h11v2.6h-11zM2.5 10.8h11v2.6h-11z"],
  tasks: ["M8 1.8l5.6 3.1v6.2L8 14.2l-5.6-3.1V4.9z", "M2.6 5L8 8l5.4-3M8 8v6"],
  recurring: [
    "M2.5 7.2a5.5 5.5 0 0 1 9.6-2.7L13.5 6",
    "M13.5 2.8V6h-3.2",
    "M13.5 8.8a5.5 5.5 0 0 1-9.6 2.7L2.5 10",
    "M2.5 13.2V10h3.2",
  ],
  workers: [
    "M4.5 4.5h7v7h-7z",
    "M6.5 1.8v2.7M9.5 1.8v2.7M6.5 11.5v2.7M9.5 11.5v2.7M1.8 6.5h2.7M1.8 9.5h2.7M11.5 6.5h2.7M11.5 9.5h2.7",
  ],
  maintenance: [
    "M9.7 5.2a3.3 3.3 0 0 1 4.3-3.1L11.7 4.4l.3 1.6 1.6.3 2.1-2.2",
    "M10 6.3L3.2 13.1a1.3 1.3 0 0 1-1.9-1.9L8.3 4.6",
  ],
  ready: [circle],
  scheduled: [circle, "M8 4.6V8l2.3 1.5"],
  waiting: [circle, "M5.2 8h.1M8 8h.1M10.8 8h.1"],
  unknown: [circle, "M6.3 6.3a1.8 1.8 0 1 1 2.5 1.7c-.6.3-.8.6-.8 1.2M8 11.1v.2"],
  limited: ["M2.5 13.5V6M13.5 13.5V6M2.5 8h11M5 8v2M8 8v2M11 8v2"],
  limits: ["M2.5 13.5V6M13.5 13.5V6M2.5 8h11M5 8v2M8 8v2M11 8v2"],
  retrying: ["M13.6 8A5.6 5.6 0 1 1 11.6 3.7", "M13.4 1.8v3h-3"],
  retried: ["M13.6 8A5.6 5.6 0 1 1 11.6 3.7", "M13.4 1.8v3h-3"],
  running: [circle, "f:M6.5 5.1v5.8L11 8z"],
  failed: ["M5.3 1.9h5.4l3.4 3.4v5.4l-3.4 3.4H5.3L1.9 10.7V5.3z", "M6 6l4 4M10 6l-4 4"],
  succeeded: [circle, "M5.2 8.2l2 2 3.7-4.2"],
  removed: [circle, "M5.2 8h5.6"],
  cancelled: [circle, "M3.6 3.6l8.8 8.8"],
  other: [circle],
  recovered: [circle, "M5.3 8.8h3.6a1.7 1.7 0 0 0 0-3.4H5.7M7.2 3.8L5.5 5.4l1.7 1.7"],
  warning: ["M8 2.2l6.3 11.3H1.7z", "M8 6.4v3.2M8 11.4v.2"],
  info: [circle, "M8 7.3v3.6M8 5v.2"],
  close: ["M4 4l8 8M12 4l-8 8"],
  check: ["M3.2 8.6l3.2 3.2 6.4-7.4"],
  plus: ["M8 3v10M3 8h10"],
  search: ["M7 2.3a4.7 4.7 0 1 0 0 9.4a4.7 4.7 0 1 0 0-9.4", "M10.5 10.5l3.2 3.2"],
  chevron: ["M6 3.8L10.2 8 6 12.2"],
  down: ["M3.8 6L8 10.2 12.2 6"],
  up: ["M8 13V3.5M4 7.3l4-4 4 4"],
  more: [
    "f:M3.4 6.8a1.2 1.2 0 1 0 0 2.4a1.2 1.2 0 1 0 0-2.4M8 6.8a1.2 1.2 0 1 0 0 2.4a1.2 1.2 0 1 0 0-2.4M12.6 6.8a1.2 1.2 0 1 0 0 2.4a1.2 1.2 0 1 0 0-2.4",
  ],
  copy: ["M5.5 5.5h8v8h-8z", "M10.5 5.5v-3h-8v8h3"],
  refresh: ["M13.6 8A5.6 5.6 0 1 1 11.6 3.7", "M13.4 1.8v3h-3"],
  menu: ["M2.5 4.5h11M2.5 8h11M2.5 11.5h11"],
  sun: [
    "M8 5.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 1 0 0-5.6",
    "M8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  ],
  moon: ["M13.3 9.6A5.8 5.8 0 0 1 6.4 2.7a5.8 5.8 0 1 0 6.9 6.9z"],
  system: ["M2 3h12v8H2z", "M5.5 13.5h5"],
  help: [circle, "M6.3 6.3a1.8 1.8 0 1 1 2.5 1.7c-.6.3-.8.6-.8 1.2M8 11.1v.2"],
  play: ["f:M4.5 2.8v10.4L13 8z"],
  edit: ["M3 13l.6-2.8 7.2-7.2 2.2 2.2-7.2 7.2z", "M9.2 4.6l2.2 2.2"],
  pause: ["M5.5 3.5v9M10.5 3.5v9"],
  calendar: ["M2.5 3.5h11v10h-11zM2.5 6.5h11M5.5 2v3M10.5 2v3"],
  trash: ["M2.8 4.3h10.4M6 4.3V2.5h4v1.8M4 4.3l.6 9.2h6.8l.6-9.2"],
  lock: ["M3.5 7h9v6.5h-9z", "M5.5 7V5a2.5 2.5 0 0 1 5 0v2"],
  link: ["M6.5 9.5l3-3M7 4.8l1.6-1.6a2.9 2.9 0 0 1 4.2 4.2L11.2 9M9 11.2l-1.6 1.6a2.9 2.9 0 0 1-4.2-4.2L4.8 7"],
};

/** An icon by name; names of job states and outcomes are their icons. A path after "f:" is filled. */
export function Icon({ name, size = 16 }) {
  return h(
    "svg",
    { class: "icon", width: size, height: size, viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" },
    (SHAPES[name] ?? []).map((shape) =>
      shape.startsWith("f:")
        ? h("path", { d: shape.slice(2), fill: "currentColor", stroke: "none" })
        : h("path", { d: shape }),
    ),
  );
}
