/** A `.sql` file imported `with { type: "text" }` is its text. */
declare module "*.sql" {
  const text: string;
  export default text;
}
