// Renders the API reference. The key that the user enters is kept in memory and sent to this server only.

const dark = matchMedia("(prefers-color-scheme: dark)");
const applyScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", applyScheme);
applyScheme();

/** Shows an operation's example request above its responses. */
function codeSamples(system) {
  const { React } = system;
  return {
    wrapComponents: {
      responses: (Responses) => (props) => {
        const operation = system.specSelectors.specJson().getIn(["paths", props.path, props.method]);
        const source = operation?.getIn(["x-codeSamples", 0, "source"]);
        const sample = React.createElement(
          "div",
          { className: "code-sample" },
          React.createElement("h4", null, "Example request"),
          React.createElement("pre", null, React.createElement("code", null, source)),
        );
        return React.createElement(
          React.Fragment,
          null,
          source === undefined ? null : sample,
          React.createElement(Responses, props),
        );
      },
    },
  };
}

const ui = SwaggerUIBundle({
  url: "openapi.json",
  domNode: document.getElementById("reference"),
  plugins: [codeSamples],
  deepLinking: true,
  docExpansion: "list",
  filter: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: -1,
  // Keys are not stored, and no external validator is called.
  persistAuthorization: false,
  validatorUrl: null,
  onComplete: listAreas,
});

function listAreas() {
  const list = document.getElementById("areas");
  if (list.childElementCount > 0) return;
  for (const tag of ui.specSelectors.specJson().get("tags")) {
    const name = tag.get("name");
    const link = document.createElement("a");
    link.href = `#/${encodeURIComponent(name)}`;
    link.textContent = name;
    link.addEventListener("click", () => {
      ui.layoutActions.show(["operations-tag", name], true);
      document.getElementById(`operations-tag-${name}`)?.scrollIntoView();
      // Only the visible part of the document is rendered; Swagger UI computes the position of the rest.
      ui.layoutActions.scrollToVirtualizedOperation(["operations-tag", name]);
    });
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
}
