/* Sets the colour scheme before the first paint; a classic script, because modules run after it. */
(function () {
  try {
    var theme = localStorage.getItem("pgworker.theme");
    if (theme === "light" || theme === "dark") {
      document.documentElement.dataset.theme = theme;
    }
  } catch (ignored) {
    // Without storage the system's scheme applies.
  }
})();
