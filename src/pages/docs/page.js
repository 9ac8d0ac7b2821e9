// Renders the API reference, one area at a time: all operations at once would take seconds to draw. The key that the user
// enters is kept in memory and sent to this server only.

const dark = matchMedia("(prefers-color-scheme: dark)");
const applyScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", applyScheme);
applyScheme();

const METHODS = ["get", "post", "put", "patch", "delete"];
/** More would not fit, and the next letter narrows them. */
const SHOWN_OPERATIONS = 20;

function element(name, attributes, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

async function load(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return response.json();
}

/** The schemas and other components that a part of the document names, and those that they name. */
function componentsOf(part, all) {
  const found = {};
  const pending = [part];
  while (pending.length > 0) {
    for (const [, kind, name] of JSON.stringify(pending.pop()).matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      if (found[kind]?.[name] !== undefined) continue;
      found[kind] = { ...found[kind], [name]: all[kind][name] };
      pending.push(all[kind][name]);
    }
  }
  return { ...found, securitySchemes: all.securitySchemes };
}

/** The document with one area alone, or with none: the introduction. */
function partOf(document, area) {
  const paths = {};
  for (const [path, item] of Object.entries(document.paths)) {
    const own = Object.entries(item).filter(([, operation]) => operation.tags?.[0] === area);
    if (own.length > 0) paths[path] = Object.fromEntries(own);
  }
  const { description, ...info } = document.info;
  return {
    ...document,
    info: area === null ? document.info : info,
    tags: document.tags.filter(({ name }) => name === area),
    paths,
    components: componentsOf(paths, document.components),
  };
}

/** The first heading is in the navigation; the title follows it. Everything is in a landmark. Code that scrolls can have the focus. */
function repairAccessibility() {
  for (const title of ui.querySelectorAll(".info .title:not([aria-level])"))
    title.setAttribute("aria-level", "2");
  for (const about of ui.querySelectorAll(".information-container:not([role])")) {
    about.setAttribute("role", "region");
    about.setAttribute("aria-label", "About");
  }
  for (const code of ui.querySelectorAll(".microlight:not([tabindex])")) code.setAttribute("tabindex", "0");
}

/**
 * Shows an operation's example request, and the guides that use it, above its responses. An operation's path is no link of its
 * own: it is part of the button that unfolds it.
 */
function additions(guides) {
  return (system) => {
    const { React } = system;
    const h = React.createElement;
    const sample = (source) =>
      h(
        "div",
        { className: "code-sample" },
        h("h4", null, "Example request"),
        h("pre", null, h("code", null, source)),
      );
    const links = (list) =>
      h(
        "p",
        { className: "guides" },
        "Guides: ",
        list.flatMap(([title, path], at) => [
          at === 0 ? "" : ", ",
          h("a", { key: path, href: `docs/guides/${path}` }, title),
        ]),
      );
    return {
      wrapComponents: {
        DeepLink:
          () =>
          ({ text }) =>
            h("span", null, text),
        // The introduction has none, and says so nowhere.
        operations: (Operations) => (props) =>
          system.specSelectors.specJson().get("paths").size === 0 ? null : h(Operations, props),
        responses: (Responses) => (props) => {
          const operation = system.specSelectors.specJson().getIn(["paths", props.path, props.method]);
          const source = operation?.getIn(["x-codeSamples", 0, "source"]);
          const uses = guides[operation?.get("operationId")];
          return h(
            React.Fragment,
            null,
            source === undefined ? null : sample(source),
            uses === undefined ? null : links(uses),
            h(Responses, props),
          );
        },
      },
    };
  };
}

/** The area and the operation that the address names, such as `#/Monitors/monitors.create`. */
function placeOf(hash) {
  const [area, operation] = hash
    .replace(/^#\/?/, "")
    .split("/")
    .map((part) => decodeURIComponent(part));
  return { area: area ?? "", operation };
}

function operationsOf({ paths }) {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => method in item).map((method) => {
      const { tags, operationId, summary } = item[method];
      const address = `#/${encodeURIComponent(tags[0])}/${operationId}`;
      return {
        address,
        title: `${method.toUpperCase()} ${path}`,
        summary,
        text: `${method} ${path} ${summary}`.toLowerCase(),
      };
    }),
  );
}

function listAreas(document) {
  const links = document.tags.map(({ name }) =>
    element("a", { href: `#/${encodeURIComponent(name)}` }, name),
  );
  areas.replaceChildren(...links.map((link) => element("li", {}, link)));
}

/** The introduction ends with the areas. */
function overviewOf(document) {
  const rows = document.tags.flatMap(({ name, description }) => [
    element("dt", {}, element("a", { href: `#/${encodeURIComponent(name)}` }, name)),
    element("dd", {}, description),
  ]);
  return element(
    "section",
    { id: "overview", "aria-label": "Areas" },
    element("h2", {}, "Areas"),
    element("dl", {}, ...rows),
  );
}

/** Finds operations of all areas by words of their method, path and summary. */
function addSearch(operations) {
  const input = element("input", {
    type: "search",
    placeholder: "Find an operation",
    "aria-label": "Find an operation",
  });
  const status = element("p", { role: "status" });
  const list = element("ul", { id: "found" });
  input.addEventListener("input", () => {
    const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found =
      terms.length === 0 ? [] : operations.filter(({ text }) => terms.every((term) => text.includes(term)));
    areas.hidden = terms.length > 0;
    status.textContent = terms.length === 0 ? "" : `${found.length} found`;
    const items = found
      .slice(0, SHOWN_OPERATIONS)
      .map(({ address, title, summary }) =>
        element("li", {}, element("a", { href: address }, summary, element("small", {}, title))),
      );
    list.replaceChildren(...items);
  });
  areas.before(input, status, list);
}

const areas = document.getElementById("areas");
const reference = document.getElementById("reference");
const ui = document.getElementById("ui");
new MutationObserver(repairAccessibility).observe(ui, { childList: true, subtree: true });

async function start() {
  const [api, guides] = await Promise.all([load("openapi.json"), load("docs/guides/operations.json")]);
  const overview = overviewOf(api);
  let shown;
  const system = SwaggerUIBundle({
    spec: partOf(api, areaOf(api)),
    domNode: ui,
    plugins: [additions(guides)],
    deepLinking: true,
    docExpansion: "list",
    displayRequestDuration: true,
    defaultModelsExpandDepth: -1,
    // Keys are not stored, and no external validator is called.
    persistAuthorization: false,
    validatorUrl: null,
  });

  /** Shows the area that the address names, and unfolds its operation. */
  function show() {
    const { operation } = placeOf(location.hash);
    const area = areaOf(api);
    if (shown !== undefined && shown !== area) system.specActions.updateJsonSpec(partOf(api, area));
    if (shown !== area) scrollTo(0, 0);
    shown = area;
    document.title = area === null ? "Ninefold API" : `${area} · Ninefold API`;
    reference.classList.toggle("introduction", area === null);
    if (area === null) reference.append(overview);
    else overview.remove();
    for (const link of areas.querySelectorAll("a")) {
      if (link.textContent === area) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (operation === undefined) return;
    system.layoutActions.show(["operations", area, operation], true);
    // Drawn after this task.
    setTimeout(
      () =>
        document
          .getElementById(`operations-${area.replaceAll(" ", "_")}-${operation.replaceAll(".", "_")}`)
          ?.scrollIntoView(),
      100,
    );
  }
  addSearch(operationsOf(api));
  listAreas(api);
  show();
  addEventListener("hashchange", show);
}

/** The area that the address names; null for the introduction. */
function areaOf({ tags }) {
  const { area } = placeOf(location.hash);
  return tags.some(({ name }) => name === area) ? area : null;
}

start().catch(() => {
  ui.textContent = "The API document could not be loaded. Reload the page to try again.";
});
