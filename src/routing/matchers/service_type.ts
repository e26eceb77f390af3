import { defineMatcher } from '../../contracts/matcher.ts';
import { fieldCondition } from './conditions/field.ts';

/** The service that counts (the asserted one, else the key's), or a list. */
export default defineMatcher({
  compile: (value) => fieldCondition('service_type', value, (input) => input.serviceType),
});
