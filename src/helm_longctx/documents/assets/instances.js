// Lists the instances of a run entry, filters them, and opens one with its texts. All texts are set as text, never as HTML.
"use strict";
(function () {
  const { runs, rows, flags, chunk, folder } = window.INDEX;
  const PAGE = 50;
  const form = document.querySelector(".filters");
  const list = document.querySelector(".instances");
  const chunks = new Map();
  let shown = PAGE;

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  // Texts

  window.addTexts = (number, texts) => chunks.get(number).resolve(texts);

  function loadChunk(number) {
    if (!chunks.has(number)) {
      const entry = {};
      entry.promise = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
      chunks.set(number, entry);
      const script = element("script", { src: `${folder}/${number}.js` });
      script.onerror = () => entry.reject(new Error(`${folder}/${number}.js is missing`));
      document.head.append(script);
      entry.promise.then((texts) => { entry.texts = texts; }, () => {});
    }
    return chunks.get(number).promise;
  }

  async function textsOf(index) {
    return (await loadChunk(Math.floor(index / chunk)))[index % chunk];
  }

  // Filters

  function chosenRuns() {
    return [...form.querySelectorAll("[name=run]:checked")].map((box) => Number(box.value));
  }

  const percent = (score) => (score === null ? "–" : (100 * score).toFixed(1));
  const depthLabel = (depth) => (depth === null ? "" : `${Math.round(100 * depth)} %`);

  function spread(row, chosen) {
    const scores = chosen.map((run) => row.answers[run]).filter((a) => a && a[0] !== null).map((a) => a[0]);
    return scores.length ? Math.max(...scores) - Math.min(...scores) : 0;
  }

  function isShown(row, chosen, wanted) {
    const answers = chosen.map((run) => row.answers[run]).filter(Boolean);
    if (!answers.length || (wanted.task && row.task !== wanted.task)) return false;
    if (wanted.depth && depthLabel(row.depth) !== wanted.depth) return false;
    if (wanted.show === "wrong" && !answers.some((a) => a[0] !== null && a[0] < 0.5)) return false;
    if (wanted.show === "differ" && spread(row, chosen) === 0) return false;
    if (wanted.show in flags && !answers.some((a) => a[1].includes(wanted.show))) return false;
    const isWide = wanted.low <= 0 && wanted.high >= 100;
    if (!isWide && !answers.some((a) => a[0] !== null && 100 * a[0] >= wanted.low && 100 * a[0] <= wanted.high)) return false;
    return true;
  }

  function hasText(index, chosen, wanted) {
    const row = rows[index];
    const texts = [row.id, row.question, ...chosen.map((run) => (row.answers[run] || [])[2] || "")];
    const entry = wanted.whole ? chunks.get(Math.floor(index / chunk)) : null;
    if (entry && entry.texts) {
      const full = entry.texts[index % chunk];
      texts.push(full.question, ...full.references, ...full.prompts.flat().map((part) => part[1]));
      chosen.forEach((run) => { const a = full.answers[run]; if (a) texts.push(a.text || "", a.thinking || "", a.error || ""); });
    }
    return texts.some((text) => text.toLowerCase().includes(wanted.text));
  }

  function readForm() {
    const data = new FormData(form);
    return {
      task: data.get("task"), depth: data.get("depth"), show: data.get("show"), sort: data.get("sort"),
      low: Number(data.get("low")), high: Number(data.get("high")),
      text: data.get("text").trim().toLowerCase(), whole: data.has("whole"),
    };
  }

  function lowest(row, chosen) {
    return Math.min(...chosen.map((run) => row.answers[run]).map((a) => (a && a[0] !== null ? a[0] : 2)));
  }

  function findRows(chosen, wanted) {
    const found = rows.map((_, index) => index).filter((index) =>
      isShown(rows[index], chosen, wanted) && (!wanted.text || hasText(index, chosen, wanted)));
    if (wanted.sort === "difference") found.sort((a, b) => spread(rows[b], chosen) - spread(rows[a], chosen));
    if (wanted.sort === "worst") found.sort((a, b) => lowest(rows[a], chosen) - lowest(rows[b], chosen));
    return found;
  }

  let last = 0;
  async function update() {
    const turn = ++last;
    const wanted = readForm();
    if (wanted.text && wanted.whole) {
      document.querySelector(".found").textContent = "Reading all texts …";
      const count = Math.ceil(rows.length / chunk);
      await Promise.allSettled(Array.from({ length: count }, (_, number) => loadChunk(number)));
    }
    if (turn !== last) return;
    const chosen = chosenRuns();
    const found = findRows(chosen, wanted);
    document.querySelector(".found").textContent = `${found.length} of ${rows.length} instances`;
    list.replaceChildren(...found.slice(0, shown).map((index) => listItem(index, chosen)));
    document.querySelector(".more").hidden = found.length <= shown;
  }

  // List

  function chip(answer, run, withModel) {
    const score = answer ? answer[0] : null;
    const kind = score === null ? "none" : score >= 0.5 ? "right" : "wrong";
    const marks = answer ? answer[1].map((flag) => flags[flag]) : ["not asked"];
    const name = withModel ? element("span", { className: "who", textContent: runs[run].model }) : null;
    const value = element("b", { textContent: percent(score) });
    const rest = marks.length ? element("em", { textContent: marks.join(", ") }) : null;
    return element("span", { className: `chip ${kind}` }, name, value, rest);
  }

  function listItem(index, chosen) {
    const row = rows[index];
    const where = [row.task, depthLabel(row.depth) && `depth ${depthLabel(row.depth)}`, row.repeat && `repeat ${row.repeat + 1}`];
    const head = element("span", { className: "head" },
      element("span", { className: "id", textContent: row.id }),
      element("small", { textContent: where.filter(Boolean).join(" · ") }));
    const chips = element("span", { className: "chips" }, ...chosen.map((run) => chip(row.answers[run], run, chosen.length > 1)));
    const summary = element("summary", {}, head, chips,
      element("span", { className: "question", textContent: row.question || (row.answers.find(Boolean) || [])[2] || "" }));
    const details = element("details", {}, summary);
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) open(details, index, chosen);
    });
    return element("li", {}, details);
  }

  // One instance

  const MARKS = /(\[evidence, depth \d+%: [^\]]*\]|\[\.\.\. [\d,]+ (?:messages, [\d,]+ )?characters left out[^\]]*\.\.\.\])/;

  function marked(text) {
    return text.split(MARKS).map((part) => {
      if (part.startsWith("[evidence, depth ")) return element("mark", { textContent: part });
      if (part.startsWith("[... ") && MARKS.test(part)) return element("i", { className: "gap", textContent: part });
      return part;
    });
  }

  function textBox(className, ...children) {
    return element("div", { className: `textbox ${className}`, tabIndex: 0 }, ...children);
  }

  function stepBox(step, number) {
    const turns = step.prompt.map(([role, text]) =>
      element("div", {}, element("strong", { textContent: role }), textBox("prompt", ...marked(text))));
    return element("details", { className: "step" }, element("summary", { textContent: `${number + 1}. ${step.facts}` }),
      ...turns, element("strong", { textContent: "reply" }), textBox("answer-text", step.text));
  }

  function answerBox(run, answer) {
    if (!answer) return element("section", {}, element("h4", { textContent: runs[run].model }), element("p", { textContent: "not asked" }));
    const parts = [element("h4", {}, element("span", { textContent: runs[run].model }), chip([answer.score, answer.flags], run, false))];
    if (answer.error) parts.push(textBox("error", answer.error));
    if (answer.thinking) parts.push(element("details", {}, element("summary", { textContent: "Reasoning" }), textBox("", answer.thinking)));
    parts.push(textBox("answer-text", answer.text === undefined ? "(no answer)" : answer.text));
    (answer.steps || []).forEach((step, number) => parts.push(stepBox(step, number)));
    const metrics = Object.entries(answer.metrics).map(([name, value]) => `${name} ${value}`).join(" · ");
    parts.push(element("details", {}, element("summary", { textContent: "All metrics" }), element("p", { className: "metrics", textContent: metrics })));
    if (answer.helm) parts.push(element("p", {}, element("a", { href: answer.helm, textContent: "Open in HELM" })));
    return element("section", {}, ...parts);
  }

  function promptBox(number, texts, chosen) {
    const users = chosen.filter((run) => texts.answers[run] && texts.answers[run].prompt === number);
    if (!users.length) return null;
    const many = texts.prompts.length > 1 ? ` as sent to ${users.map((run) => runs[run].model).join(", ")}` : "";
    const first = users[0];
    const turns = texts.prompts[number].map(([role, text]) =>
      element("div", {}, role ? element("strong", { textContent: role }) : null, textBox("prompt", ...marked(text))));
    const command = `helm-longctx show '${runs[first].name}' '${texts.answers[first].name}'`;
    return element("div", {}, element("h4", { textContent: `Prompt${many}` }), ...turns,
      element("p", { className: "command" }, "The whole prompt: ", element("code", { textContent: command })));
  }

  async function open(details, index, chosen) {
    const body = element("div", { className: "instance" }, "Loading …");
    details.append(body);
    try {
      const texts = await textsOf(index);
      body.replaceChildren(
        element("h4", { textContent: "Accepted answers" }),
        textBox("references", texts.references.join("\n") || "(none)"),
        ...(texts.question ? [element("h4", { textContent: "Question" }), textBox("", texts.question)] : []),
        element("div", { className: "side" }, ...chosen.map((run) => answerBox(run, texts.answers[run]))),
        ...texts.prompts.map((_, number) => promptBox(number, texts, chosen)).filter(Boolean));
    } catch (error) {
      body.textContent = `The texts cannot be read: ${error.message}`;
    }
  }

  // Start

  function addOptions(name, values) {
    form.elements[name].append(...values.map(([value, text]) => element("option", { value, textContent: text })));
  }

  const present = Object.keys(flags).filter((flag) => rows.some((row) => row.answers.some((a) => a && a[1].includes(flag))));
  addOptions("show", [["", "all"], ["wrong", "wrong (score under 50 %)"], ...present.map((flag) => [flag, flags[flag]]),
    ...(runs.length > 1 ? [["differ", "models differ"]] : [])]);
  addOptions("task", [...new Set(rows.map((row) => row.task))].filter(Boolean).map((task) => [task, task]));
  const depths = [...new Set(rows.map((row) => row.depth))].filter((depth) => depth !== null).sort((a, b) => a - b);
  addOptions("depth", [...new Set(depths.map(depthLabel))].map((depth) => [depth, depth]));
  const asked = new URLSearchParams(location.hash.slice(1));
  form.querySelector(".names").append(...runs.map((run, number) => {
    const checked = asked.has("model") ? asked.getAll("model").includes(run.model) : number < 3;
    return element("label", {}, element("input", { type: "checkbox", name: "run", value: number, checked }), element("span", { textContent: run.model }));
  }));
  if (present.includes(asked.get("show"))) form.elements.show.value = asked.get("show");
  if (asked.has("text")) form.elements.text.value = asked.get("text");
  let timer = 0;
  form.addEventListener("input", () => { shown = PAGE; clearTimeout(timer); timer = setTimeout(update, 120); });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.querySelector(".more").addEventListener("click", () => { shown += PAGE; update(); });
  update();
})();
