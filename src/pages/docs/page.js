// Draws the API's description. The key that a reader enters stays in this page's memory and goes to this server alone.

const dark = matchMedia("(prefers-color-scheme: dark)");
const applyScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", applyScheme);
applyScheme();

/** Shows an operation's example request above its answers. */
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
  // A key is kept nowhere, and nobody else is asked whether the description is valid.
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
      // Of a long description only what is in sight is drawn, and Swagger UI alone knows where the rest will stand.
      ui.layoutActions.scrollToVirtualizedOperation(["operations-tag", name]);
    });
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
}
