/** Words that say little of what is wanted. */
export const FAINT_WORDS: ReadonlySet<string> = new Set(
  'a an and are at be can could do does for from has have how i in is it its me my of on or please the this that to was what when where which who why will with would you your'.split(
    ' ',
  ),
);
export const FAINT_CHARACTERS: ReadonlySet<string> = new Set('的了吗呢啊吧我你您他她它们是在有就都也还这那个么怎什请帮给把被和与要想能会');

/** Runs of what is written without spaces, and words: in groups 1 and 2. Of normalised text. */
export const RUNS = /([\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}]+)|([\p{L}\p{N}\p{M}]+)/gu;
