/* Sets the colour scheme before the first paint; a classic script, because modules run after it. */
(function () {
  var theme = null;
  try {
    theme = localStorage.getItem("pgworker.theme");
  } catch (ignored) {
    // Without storage the system's scheme applies.
  }
  if (theme !== "light" && theme !== "dark") {
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.dataset.theme = theme;
})();
