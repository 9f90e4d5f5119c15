// Sorts and searches tables, shows one length at a time, and draws plots when they come into view.
"use strict";
(function () {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Tables

  function sortKey(row, column) {
    const cell = row.cells[column];
    if ("value" in cell.dataset) return Number(cell.dataset.value);
    // A number that is missing has no key.
    return cell.classList.contains("number") ? null : cell.textContent.trim().toLowerCase();
  }

  function compare(a, b, down) {
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "number" && typeof b === "number"
      ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
    return down ? -order : order;
  }

  function sortTable(table, column, head) {
    const isRank = head.textContent.trim() === "Rank";
    const firstDown = head.classList.contains("number") && !isRank;
    const old = head.getAttribute("aria-sort");
    const down = old ? old === "ascending" : firstDown;
    all("th", table).forEach((each) => each.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    // The user's models, the others and the floors stay apart.
    [...table.tBodies].forEach((body) => {
      const rows = [...body.rows].map((row) => ({ row, key: sortKey(row, column) }));
      rows.sort((a, b) => compare(a.key, b.key, down));
      body.append(...rows.map((each) => each.row));
    });
  }

  all(".table table").forEach((table) => all("th", table).forEach((head, column) =>
    head.querySelector("button").addEventListener("click", () => sortTable(table, column, head))));

  // A table that is wider than the page says so until its last column is in view.
  all(".table .scroll").forEach((scroll) => {
    const mark = () => scroll.closest(".table").classList.toggle(
      "cut", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1);
    scroll.addEventListener("scroll", mark, { passive: true });
    new ResizeObserver(mark).observe(scroll);
  });

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

  function fit(spec, width) {
    // The names beside a plot need about 160 pixels.
    if (spec.width > width) return { ...spec, width: Math.max(180, width - 160) };
    if (!(spec.columns && spec.spec.width > 0)) return spec;
    // Each panel also needs the place of its axis.
    return { ...spec, columns: Math.max(1, Math.min(spec.columns, Math.floor(width / (spec.spec.width + 30)))) };
  }

  function specOf(plot) {
    const text = plot.figure.querySelector(".spec").textContent;
    const spec = fit(JSON.parse(text), plot.figure.querySelector(".scroll").clientWidth);
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
