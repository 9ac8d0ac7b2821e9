import { setQuery } from "../../core/route.ts";
import { Button } from "../../ui/button.tsx";

/** Opens a dialog, whose name is a parameter of the address. */
export function OpenButton({ name, children }: { name: string; children: string }) {
  return (
    <Button scope="relay:write" onClick={() => setQuery({ [name]: "1" })}>
      {children}
    </Button>
  );
}
