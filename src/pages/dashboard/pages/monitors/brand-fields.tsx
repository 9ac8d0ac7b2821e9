import { useId, useState } from "preact/hooks";
import { Button } from "../../ui/button.tsx";
import type { Control } from "../../ui/data-form.tsx";

/** The server's limit of a logo. */
const LOGO_BYTES_MAX = 32 * 1024;
const LOGO_TYPES = "image/png,image/jpeg,image/webp,image/svg+xml";
/** What the picker shows while the page has the default color. */
const SHOWN_COLOR = "#0f766e";

/** The logo of a page: an image file, which is stored as a data URI. */
export const LogoField: Control = ({ value, onChange }) => {
  const id = useId();
  const [problem, setProblem] = useState("");
  const choose = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return;
    if (file.size > LOGO_BYTES_MAX) {
      setProblem(`The image has ${Math.ceil(file.size / 1024)} KiB. Choose one of at most 32 KiB.`);
      return;
    }
    setProblem("");
    onChange(await dataUriOf(file));
  };
  return (
    <p class="field">
      <label for={id}>Logo</label>
      {typeof value === "string" ? (
        <span class="actions">
          <img class="logo" src={value} alt="Logo of the page" />
          <Button icon="delete" onClick={() => onChange(null)}>
            Remove logo
          </Button>
        </span>
      ) : null}
      <input
        id={id}
        type="file"
        accept={LOGO_TYPES}
        aria-describedby={`${id}-hint`}
        onChange={(event) => void choose(event.currentTarget.files?.[0])}
      />
      <small
        id={`${id}-hint`}
        class={problem === "" ? "quiet" : "bad"}
        role={problem === "" ? undefined : "alert"}
      >
        {problem === ""
          ? "PNG, JPEG, WebP or SVG, at most 32 KiB. Without one, the page shows the first letter of its title."
          : problem}
      </small>
    </p>
  );
};

function dataUriOf(file: File): Promise<string> {
  const read = Promise.withResolvers<string>();
  const reader = new FileReader();
  reader.onload = () => read.resolve(String(reader.result));
  reader.onerror = () => read.reject(reader.error ?? new Error("The file cannot be read."));
  reader.readAsDataURL(file);
  return read.promise;
}

/** The color of a page's icon. */
export const ColorField: Control = ({ value, onChange }) => {
  const id = useId();
  return (
    <p class="field">
      <label for={id}>Color</label>
      <span class="actions">
        <input
          id={id}
          type="color"
          value={typeof value === "string" ? value : SHOWN_COLOR}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
        {typeof value === "string" ? (
          <Button onClick={() => onChange(null)}>Default color</Button>
        ) : (
          <span class="quiet small">default</span>
        )}
      </span>
    </p>
  );
};
