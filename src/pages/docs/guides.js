// Adds to the guides what a page without scripts does without: search, copy buttons, and this server's own address.

/** The server's root, also behind a proxy that adds a prefix. */
const root = document.currentScript.src.replace(/docs\/guides\.js(?:\?.*)?$/, "");
/** The address in the examples. */
const EXAMPLE_URL = "http://127.0.0.1:9909";

const SHOWN_RESULTS = 12;

function element(name, attributes, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

/** Fills in the address of the server that serves this page. */
function fillInAddress() {
  const own = root.replace(/\/$/, "");
  if (own === EXAMPLE_URL) return;
  for (const code of document.querySelectorAll("pre > code")) {
    if (!code.textContent.includes(EXAMPLE_URL)) continue;
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      node.data = node.data.replaceAll(EXAMPLE_URL, own);
    }
  }
}

/** The commands of a block, without the lines that say what they print. */
function commandsOf(code) {
  const text = code.textContent;
  if (!code.classList.contains("language-sh")) return text;
  return text
    .split("\n")
    .filter((line) => !line.startsWith("# "))
    .join("\n");
}

async function copy(text) {
  // Only secure contexts have a clipboard: not plain HTTP on another machine.
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = element("textarea", { readonly: "", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

function addCopyButtons() {
  for (const pre of document.querySelectorAll("main pre")) {
    const code = pre.querySelector("code");
    const button = element("button", { type: "button", class: "copy" }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await copy(commandsOf(code));
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      setTimeout(() => {
        button.textContent = "Copy";
      }, 2000);
    });
    const frame = element("div", { class: "code" });
    pre.replaceWith(frame);
    frame.append(pre, button);
  }
}

/** The sections of each word. */
function readWords(lines) {
  return lines.split("\n").map((line) => {
    const [word, ...deltas] = line.split(" ");
    let section = 0;
    const sections = deltas.map((delta) => {
      section += Number.parseInt(delta, 36);
      return section;
    });
    return { word, sections };
  });
}

/** The index is requested when the search is first used. */
let index;
function loadIndex() {
  index ??= fetch(`${root}docs/guides/search.json`)
    .then((response) => response.json())
    .then(({ pages, sections, words }) => ({ pages, sections, words: readWords(words) }));
  // The next attempt requests it again.
  index.catch(() => {
    index = undefined;
  });
  return index;
}

/** The sections with all terms, the best first. Rare words, headings and titles count more. */
function find({ pages, sections, words }, query) {
  const terms = query.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
  let found = null;
  for (const term of terms) {
    const scores = new Map();
    for (const { word, sections: list } of words) {
      if (!word.startsWith(term)) continue;
      const weight = (word === term ? 2 : 1) * Math.log(1 + sections.length / list.length);
      for (const section of list) {
        const [page, , heading] = sections[section];
        const inHeading = heading.toLowerCase().includes(term) ? 3 : 1;
        const inTitle = pages[page][0].toLowerCase().includes(term) ? 2 : 1;
        const score = weight * inHeading * inTitle;
        scores.set(section, Math.max(score, scores.get(section) ?? 0));
      }
    }
    const before = found;
    found = new Map(
      [...scores]
        .filter(([section]) => before === null || before.has(section))
        .map(([section, score]) => [section, score + (before?.get(section) ?? 0)]),
    );
  }
  return [...(found ?? [])].sort(([, a], [, b]) => b - a).map(([section]) => sections[section]);
}

function addSearch() {
  const input = element("input", {
    type: "search",
    placeholder: "Search (press /)",
    "aria-label": "Search the guides",
  });
  const results = element("ul", { class: "results", hidden: "" });
  const status = element("p", { class: "status", role: "status" });
  const box = element("div", { class: "search", role: "search" }, input, status, results);
  document.querySelector("header .home").after(box);

  const show = async () => {
    const query = input.value.trim();
    results.hidden = query.length < 2;
    if (results.hidden) {
      results.replaceChildren();
      status.textContent = "";
      return;
    }
    let loaded;
    try {
      loaded = await loadIndex();
    } catch {
      status.textContent = "The index could not be loaded.";
      return;
    }
    if (input.value.trim() !== query) return;
    const found = find(loaded, query);
    status.textContent = found.length === 0 ? "Nothing found" : `${found.length} found`;
    const items = found.slice(0, SHOWN_RESULTS).map(([page, anchor, heading]) => {
      const [title, address] = loaded.pages[page];
      const href = `${root}${address}${anchor === "" ? "" : `#${anchor}`}`;
      const link = element("a", { href }, heading);
      if (title !== heading) link.append(element("small", {}, title));
      return element("li", {}, link);
    });
    results.replaceChildren(...items);
  };
  input.addEventListener("input", show);
  input.addEventListener("focus", async () => {
    await loadIndex().catch(() => {});
    await show();
  });
  box.addEventListener("keydown", async (event) => {
    const stops = [input, ...results.querySelectorAll("a")];
    const at = stops.indexOf(document.activeElement);
    if (event.key === "Escape") {
      input.value = "";
      input.focus();
      await show();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      stops[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
      event.preventDefault();
    } else if (event.key === "Enter" && at === 0) {
      results.querySelector("a")?.click();
    }
  });
  box.addEventListener("focusout", ({ relatedTarget }) => {
    if (!box.contains(relatedTarget)) results.hidden = true;
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select") !== null;
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    input.focus();
    event.preventDefault();
  });
}

fillInAddress();
addCopyButtons();
addSearch();

// The page's place in the site tree is in sight, without a scroll of the page.
const tree = document.getElementById("contents");
const place = tree.querySelector('[aria-current="page"]');
if (place !== null) tree.scrollTop = place.offsetTop - tree.clientHeight / 3;
