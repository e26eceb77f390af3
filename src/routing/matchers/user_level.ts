import { defineMatcher } from '../../contracts/matcher.ts';
import { fieldCondition } from './conditions/field.ts';

/** The caller's level, or a list of levels. */
export default defineMatcher({
  compile: (value) => fieldCondition('user_level', value, (input) => input.userLevel),
});
