// Sorts and searches tables, shows one length at a time, and draws plots when they come into view.
"use strict";
(function () {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Tables

  function sortKey(row, column) {
    const cell = row.cells[column];
    return "sort" in cell.dataset ? Number(cell.dataset.sort) : cell.textContent.trim().toLowerCase();
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }

  function sortTable(table, column, head) {
    const isRank = head.textContent.trim() === "Rank";
    const firstDown = head.classList.contains("number") && !isRank;
    const old = head.getAttribute("aria-sort");
    const down = old ? old === "ascending" : firstDown;
    all("th", table).forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => ({ row, key: sortKey(row, column) }));
    rows.sort((a, b) => (down ? -1 : 1) * compare(a.key, b.key));
    table.tBodies[0].append(...rows.map((each) => each.row));
  }

  all(".table table").forEach((table) => all("th", table).forEach((head, column) =>
    head.querySelector("button").addEventListener("click", () => sortTable(table, column, head))));

  all(".table .search").forEach((input) => input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    all("tbody tr", input.closest(".table")).forEach((row) => {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }));

  // Models

  const boxes = all(".picker input[name=model]");

  function chosenModels() {
    return new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  }

  function modelsChanged() {
    const count = document.querySelector(".models .count");
    if (!count) return;
    count.textContent = `${chosenModels().size} of ${boxes.length}`;
    plots.filter((plot) => plot.byModel && plot.drawn).forEach(draw);
  }

  boxes.forEach((box) => box.addEventListener("change", modelsChanged));
  all("[data-choose]").forEach((button) => button.addEventListener("click", () => {
    const how = button.dataset.choose;
    boxes.forEach((box) => { box.checked = how === "all" || (how === "first" && "first" in box.dataset); });
    modelsChanged();
  }));
  all(".picker .find").forEach((input) => input.addEventListener("input", () => {
    boxes.forEach((box) => {
      box.parentElement.hidden = !box.value.toLowerCase().includes(input.value.toLowerCase());
    });
  }));

  // Plots

  const plots = all("figure.plot").map((figure) => ({
    figure, byModel: "byModel" in figure.dataset, drawn: false, view: null, running: Promise.resolve(),
  }));

  function specOf(plot) {
    const spec = JSON.parse(plot.figure.querySelector(".spec").textContent);
    if (!plot.byModel) return spec;
    const chosen = chosenModels();
    const isShown = (row) => !("model" in row) || chosen.has(row.model) || row.kind === "floor";
    return { ...spec, datasets: { rows: spec.datasets.rows.filter(isShown) } };
  }

  function draw(plot) {
    plot.drawn = true;
    const config = window.THEMES[document.documentElement.dataset.theme];
    plot.running = plot.running.then(async () => {
      if (plot.view) plot.view.finalize();
      const canvas = plot.figure.querySelector(".canvas");
      const bind = plot.figure.querySelector(".bind");
      bind.replaceChildren();
      const options = { config, bind, actions: false, renderer: "svg", tooltip: { theme: "custom" } };
      plot.view = (await vegaEmbed(canvas, specOf(plot), options)).view;
      // The label of the canvas says what the plot shows, and the data are beside it.
      canvas.querySelector("svg").setAttribute("aria-hidden", "true");
    });
    return plot.running;
  }

  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    const plot = plots.find((each) => each.figure === entry.target);
    if (entry.isIntersecting && !plot.drawn) draw(plot);
  }), { rootMargin: "300px" });
  plots.forEach((plot) => seen.observe(plot.figure));
  addEventListener("theme", () => plots.filter((plot) => plot.drawn).forEach(draw));
  // Whoever prints the page gets all plots, also those not yet scrolled to.
  addEventListener("beforeprint", () => plots.filter((plot) => !plot.drawn && plot.figure.offsetParent).forEach(draw));

  all("[data-image]").forEach((button) => button.addEventListener("click", async () => {
    const plot = plots.find((each) => each.figure.contains(button));
    if (!plot.drawn) draw(plot);
    await plot.running;
    const link = document.createElement("a");
    link.href = await plot.view.toImageURL(button.dataset.image, 2);
    link.download = `${plot.figure.id}.${button.dataset.image}`;
    link.click();
  }));

  // Lengths

  function showChoice(choice) {
    all("section[data-choice]").forEach((section) => {
      section.classList.toggle("other", section.dataset.choice !== choice);
    });
  }

  const radios = all(".choices input");
  radios.forEach((radio) => radio.addEventListener("change", () => {
    showChoice(radio.value);
    history.replaceState(null, "", `#length=${radio.value}`);
  }));
  const asked = radios.find((radio) => location.hash === `#length=${radio.value}`);
  if (asked) { asked.checked = true; showChoice(asked.value); }
  modelsChanged();
})();
