import { defineMatcher } from '../../contracts/matcher.ts';
import { fieldCondition } from './conditions/field.ts';

/** The project that counts, or a list. */
export default defineMatcher({
  compile: (value) => fieldCondition('project', value, (input) => input.project),
});
