// Runs before the first paint, so that the page does not flash in the other theme.
"use strict";
(function () {
  let stored = null;
  try { stored = localStorage.getItem("theme"); } catch { /* storage can be off */ }
  const dark = stored ? stored === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  addEventListener("DOMContentLoaded", () => {
    // On narrow screens the lists of pages scroll sideways.
    document.querySelectorAll(".top nav [aria-current]").forEach((link) => {
      link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.offsetLeft - 14;
    });
    document.querySelector(".theme").addEventListener("click", () => {
      const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      try { localStorage.setItem("theme", next); } catch { /* the choice then lasts for this page */ }
      dispatchEvent(new Event("theme"));
    });
  });
})();
