import { defineMatcher } from '../../contracts/matcher.ts';
import { fieldCondition } from './conditions/field.ts';

/** `urgent`, `normal` (also when none is stated) or `batch`, or a list. */
export default defineMatcher({
  compile: (value) => fieldCondition('priority', value, (input) => input.priority),
});
