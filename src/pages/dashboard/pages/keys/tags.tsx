const SHOWN = 3;

/** Texts as tags: the first few, unless all are shown. */
export function Tags({ of: texts, all = false }: { of: readonly string[]; all?: boolean }) {
  const shown = all ? texts : texts.slice(0, SHOWN);
  return (
    <>
      {shown.map((text) => (
        <span class="tag" key={text}>
          {text}
        </span>
      ))}
      {texts.length > shown.length ? <span class="quiet small">+{texts.length - shown.length}</span> : null}
    </>
  );
}
