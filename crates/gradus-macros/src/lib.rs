//! `#[derive(Tree)]`: Rust has no reflection, so the walk over a user's struct has to be written out for each type.
//!
//! For each type the derive writes two walks, `visit` and `map`, over the fields in the order of their declaration. Both
//! come from the same list of fields, which is what keeps their orders equal.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, Type, TypePath};

/// Makes a struct or an enum a tree of arrays: an argument or a result of a staged or differentiated function.
///
/// Each field has to be a `Tree` itself, or be marked `#[tree(skip)]`: then it is static, is compared by value, and a
/// change of it makes a new trace. Examples, and what is refused, are at `gradus::tree::Tree`.
#[proc_macro_derive(Tree, attributes(tree))]
pub fn derive_tree(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    for attribute in tree_attributes(&input.attrs) {
        errors.add(attribute, "`#[tree(...)]` goes on a field, not on the type: the only option is `#[tree(skip)]`");
    }
    for parameter in input.generics.lifetimes() {
        errors.add(
            parameter,
            "a `Tree` cannot have a lifetime parameter: it is kept in the cache, so it has to own what it holds ('static)",
        );
    }
    let shapes = match &input.data {
        Data::Struct(data) => vec![Shape::new(None, &data.fields, &mut errors)],
        Data::Enum(data) => {
            let mut shapes = Vec::new();
            for variant in &data.variants {
                for attribute in tree_attributes(&variant.attrs) {
                    errors.add(attribute, "`#[tree(...)]` goes on a field of the variant, not on the variant");
                }
                shapes.push(Shape::new(Some(&variant.ident), &variant.fields, &mut errors));
            }
            shapes
        }
        Data::Union(data) => {
            errors.add(
                data.union_token,
                "a union cannot be a `Tree`: which of its fields holds a value is not known; use an enum",
            );
            Vec::new()
        }
    };
    errors.finish()?;

    // Local names are hygienic (mixed site), so no field or constant of the user can be taken for them.
    let visitor = Ident::new("visitor", Span::mixed_site());
    let mapper = Ident::new("mapper", Span::mixed_site());
    let (visit, map) = match &input.data {
        Data::Enum(_) if shapes.is_empty() => (quote!(match *self {}), quote!(match *self {})),
        Data::Enum(_) => {
            let visits = shapes.iter().enumerate().map(|(index, shape)| shape.visit_arm(index, &visitor));
            let maps = shapes.iter().map(|shape| shape.map_arm(&mapper));
            (quote!(match self { #(#visits)* }), quote!(match self { #(#maps)* }))
        }
        _ => {
            let visits = shapes.iter().map(|shape| shape.visit_struct(&visitor));
            let maps = shapes.iter().map(|shape| shape.map_struct(&mapper));
            (quote!(#(#visits)*), quote!(#(#maps)*))
        }
    };
    // A parameter that no field needs is named `_`, so that nothing warns of an unused variable.
    let is_enum = matches!(input.data, Data::Enum(_));
    let visitor_used = shapes.iter().any(|shape| is_enum || !shape.fields.is_empty());
    let mapper_used = shapes.iter().any(|shape| shape.fields.iter().any(|field| !field.skip));
    let visitor = if visitor_used { quote!(#visitor) } else { quote!(_) };
    let mapper = if mapper_used { quote!(#mapper) } else { quote!(_) };

    // The arrays of an enum depend on the variant, and a static field has no value to be had.
    let of_error = match shapes.as_slice() {
        [shape] if !is_enum && shape.fields.iter().all(|field| !field.skip) => {
            let error = Ident::new("error", Span::mixed_site());
            let whole =
                shape.with(shape.fields.iter().map(
                    |Field { ty, .. }| quote_spanned!(ty.span()=> <#ty as ::gradus::tree::Tree>::of_error(#error)?),
                ));
            let parameter = if shape.fields.is_empty() { quote!(_) } else { quote!(#error) };
            quote! {
                fn of_error(#parameter: &::gradus::Error) -> ::core::option::Option<Self> {
                    ::core::option::Option::Some(#whole)
                }
            }
        }
        _ => TokenStream::new(),
    };

    let name = &input.ident;
    let generics = bounded(input, &shapes);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl #impl_generics ::gradus::tree::Tree for #name #type_generics #where_clause {
            fn visit(&self, #visitor: &mut dyn ::gradus::tree::Visitor) {
                #visit
            }

            fn map(&self, #mapper: &mut dyn ::gradus::tree::Mapper) -> Self {
                #map
            }

            #of_error
        }
    })
}

/// One struct, or one variant of an enum: the unit in which fields are taken apart and put together.
struct Shape<'a> {
    variant: Option<&'a Ident>,
    kind: &'a Fields,
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    /// The name in paths: `weight`, or `0` for the first field of a tuple struct.
    name: String,
    ident: Option<&'a Ident>,
    /// The local variable that holds a reference to the field. It is located at the field's type, so that the compiler
    /// points there when the type does not fit.
    local: Ident,
    ty: &'a Type,
    skip: bool,
}

impl<'a> Shape<'a> {
    fn new(variant: Option<&'a Ident>, kind: &'a Fields, errors: &mut Errors) -> Self {
        let fields = kind.iter().enumerate().map(|(index, field)| Field {
            name: field.ident.as_ref().map_or_else(|| index.to_string(), |ident| ident.unraw().to_string()),
            ident: field.ident.as_ref(),
            local: format_ident!("field{index}", span = Span::mixed_site().located_at(field.ty.span())),
            ty: &field.ty,
            skip: is_skipped(&field.attrs, errors),
        });
        Shape { variant, kind, fields: fields.collect() }
    }

    /// `Self { a: x, b: y }`, `Self::Variant(x, y)`, `Self`: the same text is a pattern and an expression.
    fn with(&self, parts: impl Iterator<Item = TokenStream>) -> TokenStream {
        let path = match self.variant {
            Some(variant) => quote!(Self::#variant),
            None => quote!(Self),
        };
        match self.kind {
            Fields::Named(_) => {
                let names = self.fields.iter().map(|field| field.ident);
                quote!(#path { #(#names: #parts),* })
            }
            Fields::Unnamed(_) => quote!(#path(#(#parts),*)),
            Fields::Unit => path,
        }
    }

    fn pattern(&self) -> TokenStream {
        self.with(self.fields.iter().map(|Field { local, .. }| quote!(#local)))
    }

    fn visit_fields(&self, visitor: &Ident) -> TokenStream {
        let visits = self.fields.iter().map(|Field { name, local, ty, skip, .. }| {
            let visit = if *skip {
                quote_spanned!(ty.span()=> #visitor.frozen(#local))
            } else {
                quote_spanned!(ty.span()=> <#ty as ::gradus::tree::Tree>::visit(#local, #visitor))
            };
            quote! {
                #visitor.enter(::gradus::tree::Segment::Field(#name));
                #visit;
                #visitor.leave();
            }
        });
        quote!(#(#visits)*)
    }

    fn mapped(&self, mapper: &Ident) -> TokenStream {
        self.with(self.fields.iter().map(|Field { local, ty, skip, .. }| {
            if *skip {
                quote_spanned!(ty.span()=> <#ty as ::core::clone::Clone>::clone(#local))
            } else {
                quote_spanned!(ty.span()=> <#ty as ::gradus::tree::Tree>::map(#local, #mapper))
            }
        }))
    }

    fn visit_struct(&self, visitor: &Ident) -> TokenStream {
        let (open, visits) = (self.open(), self.visit_fields(visitor));
        quote!(#open #visits)
    }

    fn map_struct(&self, mapper: &Ident) -> TokenStream {
        let (open, mapped) = (self.open(), self.mapped(mapper));
        quote!(#open #mapped)
    }

    fn open(&self) -> TokenStream {
        if self.fields.is_empty() {
            return TokenStream::new();
        }
        let pattern = self.pattern();
        quote!(let #pattern = self;)
    }

    fn visit_arm(&self, index: usize, visitor: &Ident) -> TokenStream {
        let (pattern, visits) = (self.pattern(), self.visit_fields(visitor));
        let name = self.variant.map(|variant| variant.unraw().to_string()).unwrap_or_default();
        let structure = format!("variant {name}");
        let inside = (!self.fields.is_empty()).then(|| {
            quote! {
                #visitor.enter(::gradus::tree::Segment::Variant(#name));
                #visits
                #visitor.leave();
            }
        });
        quote! {
            #pattern => {
                #visitor.structure(#structure, #index);
                #inside
            }
        }
    }

    fn map_arm(&self, mapper: &Ident) -> TokenStream {
        let (pattern, mapped) = (self.pattern(), self.mapped(mapper));
        quote!(#pattern => #mapped,)
    }
}

/// The generics of the type with the bounds under which it is a `Tree`.
///
/// The bound is on the type of the field (`Static<T>: Tree`, not `T: Tree`), because that is what the walk needs. Only a
/// field that holds the type itself (`Box<List<T>>` in `List<T>`) cannot be bounded so, since proving the bound would need
/// the impl that it guards; there the parameters that occur beside the recursion are bounded instead.
fn bounded(input: &DeriveInput, shapes: &[Shape]) -> syn::Generics {
    let parameters: BTreeSet<&Ident> = input.generics.type_params().map(|parameter| &parameter.ident).collect();
    let mut generics = input.generics.clone();
    if parameters.is_empty() {
        return generics;
    }
    let predicates = &mut generics.make_where_clause().predicates;
    for parameter in &parameters {
        // What `Tree` asks of the whole type: `#[derive(Clone)]` passes `Clone` on to the parameters.
        predicates.push(syn::parse_quote!(
            #parameter: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static
        ));
    }
    let mut seen = BTreeSet::new();
    for field in shapes.iter().flat_map(|shape| &shape.fields) {
        let mut mentions = Mentions {
            own: &input.ident,
            parameters: &parameters,
            bare: BTreeSet::new(),
            any: false,
            recursive: false,
        };
        mentions.visit_type(field.ty);
        let ty = field.ty;
        if !mentions.any || !seen.insert((quote!(#ty).to_string(), field.skip)) {
            continue;
        }
        if field.skip {
            predicates.push(syn::parse_quote!(#ty: ::gradus::tree::Frozen + ::core::clone::Clone));
        } else if mentions.recursive {
            for parameter in mentions.bare {
                predicates.push(syn::parse_quote!(#parameter: ::gradus::tree::Tree));
            }
        } else {
            predicates.push(syn::parse_quote!(#ty: ::gradus::tree::Tree));
        }
    }
    generics
}

/// What a field's type mentions of the type that is being derived.
struct Mentions<'a> {
    own: &'a Ident,
    parameters: &'a BTreeSet<&'a Ident>,
    /// Parameters that stand by themselves, outside the recursive mention.
    bare: BTreeSet<Ident>,
    any: bool,
    recursive: bool,
}

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_type_path(&mut self, path: &'ast TypePath) {
        if let Some(last) = path.path.segments.last()
            && path.qself.is_none()
            && (last.ident == *self.own || last.ident == "Self")
        {
            self.recursive = true;
            self.any = true;
            return;
        }
        if let Some(first) = path.path.segments.first()
            && self.parameters.contains(&first.ident)
        {
            self.any = true;
            if path.path.segments.len() == 1 {
                self.bare.insert(first.ident.clone());
            }
        }
        syn::visit::visit_type_path(self, path);
    }
}

fn tree_attributes(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("tree"))
}

fn is_skipped(attributes: &[Attribute], errors: &mut Errors) -> bool {
    let mut skip = false;
    for attribute in tree_attributes(attributes) {
        let parsed = attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("skip") {
                return Err(
                    meta.error("unknown option of `#[tree(...)]`: the only one is `skip`, as in `#[tree(skip)]`")
                );
            }
            if skip {
                return Err(meta.error("`skip` is already given"));
            }
            skip = true;
            Ok(())
        });
        match parsed {
            Err(error) => errors.push(error),
            Ok(()) if !skip => errors.add(attribute, "`#[tree()]` says nothing: write `#[tree(skip)]` or remove it"),
            Ok(()) => {}
        }
    }
    skip
}

/// All mistakes of one type, so that they are reported together.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn add(&mut self, at: impl quote::ToTokens, message: &str) {
        self.push(Error::new_spanned(at, message));
    }

    fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(source: &str) -> Vec<String> {
        let input: DeriveInput = syn::parse_str(source).expect("the test's source parses");
        let error = expand(&input).expect_err("the derive refuses it");
        error.into_iter().map(|error| error.to_string()).collect()
    }

    fn output(source: &str) -> String {
        let input: DeriveInput = syn::parse_str(source).expect("the test's source parses");
        expand(&input).expect("the derive takes it").to_string()
    }

    #[test]
    fn mistakes_are_told_all_at_once() {
        let told = errors("#[tree(skip)] struct A<'a> { #[tree(static)] a: B, #[tree] b: C, #[tree()] c: &'a D }");
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(told[0].contains("goes on a field"), "{told:?}");
        assert!(told[1].contains("lifetime"), "{told:?}");
        assert!(told[2].contains("skip"), "{told:?}");
        assert!(told[4].contains("says nothing"), "{told:?}");
        assert!(errors("union U { a: u8 }")[0].contains("use an enum"));
        assert!(errors("enum E { #[tree(skip)] A(B) }")[0].contains("not on the variant"));
        assert!(errors("struct A(#[tree(skip, skip)] B);")[0].contains("already"));
        assert!(errors("struct A { #[tree = 3] b: B }")[0].contains("tree"));
        assert!(errors("struct A { #[tree(skip = true)] b: B }")[0].contains("expected"));
    }

    #[test]
    fn bounds_are_on_fields_except_through_recursion() {
        let text = output("struct A<T, U> { a: Static<T>, b: Array, #[tree(skip)] c: Option<U> }");
        assert!(text.contains("Static < T > : :: gradus :: tree :: Tree"), "{text}");
        assert!(text.contains("Option < U > : :: gradus :: tree :: Frozen"), "{text}");
        assert!(!text.contains(", T : :: gradus :: tree :: Tree"), "{text}");
        let text = output("enum L<T> { Nil, Cons(T, Box<L<T>>), Pair(Vec<(T, Self)>) }");
        assert!(!text.contains("Box < L < T >> :"), "{text}");
        assert!(text.contains(", T : :: gradus :: tree :: Tree"), "{text}");
    }
}
