import { useEffect, useState } from "preact/hooks";

/** After a pause of this length nobody types any more. */
const PAUSE_MS = 250;

/** A text once it stands still: what is asked of the server with each letter would be thrown away with the next. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
